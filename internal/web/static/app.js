// What a page of signalbox does with scripts: it follows what changes, shows times
// in the zone and language of the viewer, and takes keys. Without scripts everything
// is there too, as of when the page was loaded.
"use strict";

const byId = (id) => document.getElementById(id);
const main = () => byId("main");

// Times. What the server writes is UTC; the element says it exactly.

const absolute = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});
const units = [["day", 86400], ["hour", 3600], ["minute", 60]];

function lasted(seconds) {
  const [unit, size] = units.find(([, s]) => seconds >= s) ?? ["minute", 60];
  const n = Math.max(0, Math.floor(seconds / size));
  return new Intl.NumberFormat(undefined, { style: "unit", unit, unitDisplay: "long" }).format(n);
}

function showTimes(within) {
  for (const el of within.querySelectorAll("time[datetime]")) {
    const at = new Date(el.dateTime);
    // One that is shown in the zone of its schedule stays so.
    if (Number.isNaN(at.getTime()) || "zone" in el.dataset) continue;
    const text = absolute.format(at);
    el.title = `${text}, ${el.dateTime}`;
    el.textContent = "ago" in el.dataset ? lasted((Date.now() - at) / 1000) : text;
  }
}

// Following. The server tells that something changed, and the page is asked for
// again: only its main part, which replaces the one that is shown.

let served = ""; // The main part as the server sent it last.
let source = null;
let asking = false;
let again = false;
let retry = 0;

// announce tells those who do not look. What matters less is told now and then.
let announced = 0;
function announce(text, matters) {
  if (!matters && Date.now() - announced < 20000) return;
  announced = Date.now();
  byId("announce").textContent = text;
}

function showLink(state) {
  const el = byId("link-state");
  el.hidden = state === "";
  el.textContent = state;
}

// rows are what is marked when it changes.
const rows = (within) => [...within.querySelectorAll("tbody tr, .rule, .timeline > li, .steps > li, .gate")];

// fieldKey names a field, the same before and after.
function fieldKey(el) {
  const form = el.form;
  const what = form ? `${form.getAttribute("action")} ${form.elements.do?.value ?? ""}` : "";
  return `${what} ${el.name || el.id}`;
}
const fields = (within) => [...within.querySelectorAll("input:not([type=hidden]), select, textarea")];

// spot names the element that has the focus, so that it can be found again.
function spot(el) {
  if (!main().contains(el) || el === main()) return null;
  if (el.id) return (within) => within.querySelector(`#${CSS.escape(el.id)}`);
  if (el.matches("input, select, textarea")) return (within) => fields(within).find((f) => fieldKey(f) === fieldKey(el));
  if (el.matches("a")) { // Also one in a picture, whose href is no text.
    const href = el.getAttribute("href");
    return (within) => [...within.querySelectorAll("a")].find((a) => a.getAttribute("href") === href);
  }
  if (el.tagName === "SUMMARY" && el.parentElement.id) return (within) => within.querySelector(`#${CSS.escape(el.parentElement.id)} > summary`);
  if (el.form) {
    const key = `${el.form.getAttribute("action")} ${el.form.elements.do?.value ?? ""}`;
    return (within) => [...within.querySelectorAll("form")].find((f) => `${f.getAttribute("action")} ${f.elements.do?.value ?? ""}` === key)?.querySelector("button");
  }
  return null;
}

// detailsKey names something that opens: by its id, or by its place below one.
function detailsKey(el) {
  if (el.id) return el.id;
  const up = el.parentElement.closest("details, section, main");
  const beside = [...up.querySelectorAll("details")];
  const above = up.tagName === "DETAILS" ? detailsKey(up) : up.getAttribute("aria-labelledby") ?? "";
  return `${above} ${beside.indexOf(el)} ${el.querySelector("summary")?.textContent ?? ""}`;
}

function replace(fresh) {
  const old = main();
  const before = new Set(rows(parse(served) ?? document.createElement("main")).map((r) => r.outerHTML));
  const opened = new Map([...old.querySelectorAll("details")].map((d) => [detailsKey(d), d.open]));
  const written = new Map(fields(old).filter((f) => f.value !== f.defaultValue || document.activeElement === f).map((f) => [fieldKey(f), f]));
  const focus = spot(document.activeElement);
  const selected = document.activeElement?.selectionStart;
  const scroll = [window.scrollX, window.scrollY];
  const graph = byId("graph");
  const within = [graph?.scrollLeft, graph?.scrollTop];

  const changed = rows(fresh).filter((r) => !before.has(r.outerHTML));
  for (const d of fresh.querySelectorAll("details")) {
    const open = opened.get(detailsKey(d));
    if (open !== undefined) d.open = open;
  }
  for (const f of fields(fresh)) {
    const was = written.get(fieldKey(f));
    if (was) f.value = was.value;
  }
  showTimes(fresh);
  old.replaceWith(fresh);
  const target = focus?.(fresh);
  target?.focus({ preventScroll: true });
  if (target && typeof selected === "number" && target.setSelectionRange) {
    try { target.setSelectionRange(selected, selected); } catch { /* Not of this type. */ }
  }
  window.scrollTo(...scroll);
  if (graph) byId("graph")?.scrollTo(...within);
  for (const r of changed) r.classList.add("changed");
  return changed.length;
}

function parse(html) {
  return new DOMParser().parseFromString(html, "text/html").getElementById("main");
}

// refresh asks for the page again. While it is asked for, more changes are gathered.
async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    const answer = await fetch(location.href.split("#")[0], {
      headers: { "X-Signalbox-Fragment": "main" }, cache: "no-store", credentials: "same-origin", signal: AbortSignal.timeout(20000),
    });
    if (answer.status === 401) {
      location.reload(); // It leads to the sign-in.
      return;
    }
    const html = await answer.text();
    const fresh = parse(html);
    if (!fresh || answer.status >= 500 || answer.status === 429) throw new Error(`answer ${answer.status}`);
    if (fresh.dataset.assets !== main().dataset.assets && !fields(main()).some((f) => f.value !== f.defaultValue)) {
      location.reload(); // There is another version.
      return;
    }
    if (html.trim() !== served) {
      const changed = replace(fresh);
      served = html.trim();
      const title = fresh.dataset.title;
      if (title !== document.title) announce(title, true);
      else if (changed > 0) announce(`Changed: ${changed}`);
      document.title = title;
    }
    showLink("");
  } catch {
    showLink("offline");
    again = true;
  } finally {
    asking = false;
    // Between two times there is a pause, longer for a page of many rows.
    setTimeout(() => {
      if (again && !document.hidden) {
        again = false;
        refresh();
      }
    }, Math.max(1000, Math.min(5000, main().querySelectorAll("tr").length * 40)));
  }
}

function follow() {
  const address = main().dataset.live;
  if (!address || source || document.hidden) return;
  source = new EventSource(address);
  source.addEventListener("open", () => {
    if (retry > 0) refresh(); // Something may have been missed.
    retry = 0;
    showLink("");
  });
  source.addEventListener("changed", refresh);
  source.addEventListener("error", () => {
    retry++;
    if (retry > 1) showLink("offline");
    if (source?.readyState === EventSource.CLOSED) {
      // The server refused; after a while it may not.
      unfollow();
      setTimeout(() => { refresh(); follow(); }, Math.min(60, 5 * retry) * 1000);
    }
  });
}

function unfollow() {
  source?.close();
  source = null;
}

// A page that nobody looks at does not follow: a browser has few connections.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) {
    hiding = setTimeout(unfollow, 15000);
  } else if (main().dataset.live) {
    if (!source) refresh();
    follow();
  }
});
window.addEventListener("offline", () => showLink("offline"));
window.addEventListener("online", () => { refresh(); follow(); });

// A command that is under way is looked at, also if its outcome is not told.
setInterval(() => {
  if (!document.hidden && main().querySelector("[data-pending]")) refresh();
}, 3000);

// Light or dark.

function setTheme(theme) {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  byId("theme").textContent = { light: "Light", dark: "Dark" }[theme] ?? "Auto";
  byId("theme").setAttribute("aria-label", `Colors: ${theme || "as the system"}. Change them.`);
  try {
    if (theme) localStorage.setItem("signalbox-theme", theme);
    else localStorage.removeItem("signalbox-theme");
  } catch { /* It lasts as long as the page. */ }
}

// Keys.

const keys = [["/", "search"], ["j", "next row"], ["k", "row before"], ["Enter", "open the row"], ["?", "these keys"]];

function move(by) {
  const all = [...main().querySelectorAll("tbody tr, .rule")];
  if (all.length === 0) return;
  const now = all.findIndex((r) => r.contains(document.activeElement));
  const next = all[now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, now + by))];
  const target = next.querySelector("a[href], summary, button");
  target?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function help() {
  let dialog = byId("keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    dialog.setAttribute("aria-label", "Keys");
    const list = document.createElement("dl");
    list.className = "facts";
    for (const [key, does] of keys) {
      const dt = document.createElement("dt");
      dt.append(Object.assign(document.createElement("kbd"), { textContent: key }));
      list.append(dt, Object.assign(document.createElement("dd"), { textContent: does }));
    }
    const close = Object.assign(document.createElement("button"), { textContent: "Close", type: "button" });
    close.addEventListener("click", () => dialog.close());
    dialog.append(Object.assign(document.createElement("h2"), { textContent: "Keys" }), list, close);
    document.body.append(dialog);
  }
  if (!dialog.open) dialog.showModal();
}

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, select, textarea, dialog")) return;
  switch (e.key) {
    case "/": {
      const search = main().querySelector("input[type=search]");
      if (!search) return;
      search.focus();
      search.select();
      break;
    }
    case "j": move(1); break;
    case "k": move(-1); break;
    case "?": help(); break;
    default: return;
  }
  e.preventDefault();
});

// Forms. A choice filters at once, and nothing is sent twice.

document.addEventListener("change", (e) => {
  if (e.target.matches("select[data-submit]")) e.target.form.requestSubmit();
});
document.addEventListener("submit", (e) => {
  if (e.target.method !== "post") return;
  if (e.target.dataset.sent) e.preventDefault();
  e.target.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const f of document.querySelectorAll("form[data-sent]")) delete f.dataset.sent;
});

// The start.

served = main().outerHTML.trim();
showTimes(document);
setInterval(() => showTimes(main()), 60000);
for (const el of [byId("theme"), ...document.querySelectorAll(".keys-hint")]) el.hidden = false;
setTheme(document.documentElement.dataset.theme ?? "");
byId("theme").addEventListener("click", () => {
  const order = ["", "light", "dark"];
  setTheme(order[(order.indexOf(document.documentElement.dataset.theme ?? "") + 1) % order.length]);
});
follow();
