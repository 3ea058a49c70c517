// The viewer's choice of light or dark, before anything is drawn.
"use strict";
try {
  const theme = localStorage.getItem("signalbox-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, the system says which.
}
