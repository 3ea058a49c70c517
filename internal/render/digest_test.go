package render_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/digest"
	"signalbox/internal/render"
)

const digestPage = "https://gitea.example.org/signalbox/digests"

func found(s digest.Section, severity digest.Severity, subject, text string) digest.Finding {
	return digest.Finding{ID: string(s) + "/" + subject, Section: s, Cluster: "prod", Severity: severity, Subject: subject, Text: text, Since: since, URL: "https://gitea.example.org/x"}
}

// digested is a report with a bit of everything, and a text from outside wherever
// there is one.
func digested(text string) digest.Report {
	root := found(digest.Flux, digest.Broken, "Kustomization "+text, "is not ready: "+text)
	root.New = true
	for range 5 {
		root.Under = append(root.Under, found(digest.Flux, digest.Broken, text, text))
	}
	pulled := found(digest.Gate, digest.Notable, "ops/home-gitops#12 "+text, "is held by "+text+": "+text)
	pulled.Cluster, pulled.Repo, pulled.Since = "", 7, time.Time{}
	return digest.Report{
		Name: "morning", Scheduled: since.Add(time.Hour), Made: since.Add(3 * time.Hour), Late: true, Zone: "Europe/Berlin", Before: since.Add(-23 * time.Hour),
		Sections: []digest.Part{
			{Section: digest.Flux, Summary: []digest.Summary{{Text: text}, {Text: "213 of 214 Kustomizations on dev are ready"}}, Findings: []digest.Finding{root}, More: 7},
			{Section: digest.Nodes, Summary: []digest.Summary{{Text: "3 of 3 nodes on prod are ready"}}},
			{Section: digest.Storage, Blind: []digest.Blind{{Section: digest.Storage, Cluster: "prod", Why: text}}},
			{Section: digest.Pipelines, Findings: []digest.Finding{found(digest.Pipelines, digest.Unclear, text, "cannot be read: "+text)}},
			{Section: digest.Gate, Findings: []digest.Finding{pulled}},
		},
		Recovered: []digest.Finding{found(digest.Flux, digest.Broken, "GitRepository "+text, "is not ready: "+text), found(digest.Nodes, digest.Broken, "Node "+text, text)},
		New:       6, Still: 9, Unknown: 2, MoreRecovered: 3,
	}
}

func quietReport(text string) digest.Report {
	return digest.Report{
		Name: "morning", Made: since, Scheduled: since, Before: since.Add(-24 * time.Hour),
		Sections: []digest.Part{
			{Section: digest.Flux, Summary: []digest.Summary{{Text: "214 of 214 Kustomizations on prod are ready"}}},
			{Section: digest.Gate, Summary: []digest.Summary{{Text: text}}},
		},
	}
}

func batch(text string) digest.Batch {
	root := found(digest.Flux, digest.Broken, "Kustomization "+text, "is not ready: "+text)
	for range 5 {
		root.Under = append(root.Under, found(digest.Flux, digest.Broken, text, text))
	}
	return digest.Batch{
		Broke: []digest.Notice{{Finding: root, Began: since}, {Finding: found(digest.Nodes, digest.Unclear, "Node "+text, text), Began: since}},
		Recovered: []digest.Notice{
			{Finding: found(digest.Storage, digest.Broken, "Longhorn volume "+text, "is degraded: "+text), Began: since, Ended: since.Add(90 * time.Minute)},
			{Finding: found(digest.Storage, digest.Broken, text, text), Began: since, Ended: since.Add(72 * time.Hour)},
		},
	}
}

// digestTalks are all that is said of digests and alerts, with a text from outside.
func digestTalks(text string) map[string]render.Talk {
	all := batch(text)
	one := digest.Batch{Broke: all.Broke[:1]}
	return map[string]render.Talk{
		"digest":         render.Digest(digested(text), "morning "+text, digestPage),
		"digest-quiet":   render.Digest(quietReport(text), "", digestPage),
		"alert":          render.Alert(all, "Europe/Berlin", digestPage),
		"alert-one":      render.Alert(one, "", ""),
		"alert-many":     render.Alert(digest.Batch{Broke: all.Broke}, "", digestPage),
		"alert-over":     render.Alert(digest.Batch{Recovered: all.Recovered}, "nowhere", ""),
		"alert-over-one": render.Alert(digest.Batch{Recovered: all.Recovered[:1]}, "", ""),
	}
}

func TestDigestIssue(t *testing.T) {
	isGolden(t, filepath.Join("testdata", "digest.md"), render.DigestIssue(digested("longhorn: no route to host"), "morning", digestPage))
	isGolden(t, filepath.Join("testdata", "digest.txt"), render.DigestText(digested("longhorn: no route to host"), "morning", digestPage))
}

func TestDigestIssueHoldsNothingElse(t *testing.T) {
	plain := tags(t, toHTML(t, render.DigestIssue(digested(harmless), harmless, digestPage)))
	for _, text := range hostileInChat {
		page := toHTML(t, render.DigestIssue(digested(text), text, digestPage))
		if m := mentions(page); len(m) > 0 {
			t.Errorf("%q mentions or refers to %q", text, m)
		}
		if got := tags(t, page); text != "" && !sameTags(got, plain) {
			t.Errorf("%q gives other tags (-harmless +got):\n%s", text, cmp.Diff(plain, got))
		}
	}
	for _, name := range []string{"morning", "--> <script>", "a--b", "<!--"} {
		marker := render.DigestMarker(name)
		if !strings.HasPrefix(marker, "<!-- ") || !strings.HasSuffix(marker, " -->") || strings.ContainsAny(marker[4:len(marker)-3], "<>") || strings.Contains(marker[4:len(marker)-3], "--") {
			t.Errorf("marker %q", marker)
		}
	}
}

// hugeReport has nine hundred findings with long texts, more than any place shows.
func hugeReport() digest.Report {
	r := digested(strings.Repeat("the controller says <that> & more, ", 40))
	for i := range r.Sections {
		p := &r.Sections[i]
		for range 90 {
			f := found(p.Section, digest.Broken, strings.Repeat("name ", 40), strings.Repeat("<text> & ", 60))
			f.Under = []digest.Finding{f}
			p.Findings = append(p.Findings, f)
			p.Blind = append(p.Blind, digest.Blind{Why: strings.Repeat("why ", 70)})
			p.Summary = append(p.Summary, digest.Summary{Text: strings.Repeat("what ", 50)})
		}
		r.Recovered = append(r.Recovered, p.Findings...)
	}
	return r
}

func TestDigestIsBounded(t *testing.T) {
	r := hugeReport()
	all := batch("x")
	for range 200 {
		all.Broke, all.Recovered = append(all.Broke, all.Broke[0]), append(all.Recovered, all.Recovered[0])
	}
	for name, talk := range map[string]render.Talk{"digest": render.Digest(r, strings.Repeat("title ", 300), digestPage), "alert": render.Alert(all, "", digestPage)} {
		slack, matrix := render.Slack(talk), render.Matrix(talk)
		mrkdwnIn(t, slack.Blocks)
		if len(slack.Text) > 4000 || len(slack.Blocks) > 12_000 || slack.Text == "" {
			t.Errorf("%s: Slack is given %d bytes of text and %d of blocks", name, len(slack.Text), len(slack.Blocks))
		}
		if n := len(matrix.Text) + len(matrix.HTML); n > 40<<10 || matrix.Text == "" {
			t.Errorf("%s: Matrix is given %d bytes", name, n)
		}
		for place, shown := range map[string]string{"Slack": slack.Blocks, "Matrix": matrix.HTML} {
			if !strings.Contains(shown, "more") || !strings.Contains(shown, digestPage) {
				t.Errorf("%s: %s does not count what was left out, or does not lead to it:\n%s", name, place, shown)
			}
		}
	}
	if n := len(render.DigestIssue(r, "x", digestPage)); n > render.MaxComment || n < render.MaxComment/8 {
		t.Errorf("an issue of %d bytes", n)
	}
}

// What is left out is counted right, however much of it.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	for _, n := range []int{1, 9, 10, 11, 50, 500} {
		var r digest.Report
		p := digest.Part{Section: digest.Flux, More: 7}
		for i := range n {
			p.Findings = append(p.Findings, found(digest.Flux, digest.Broken, fmt.Sprint("Kustomization k", i), strings.Repeat("long ", 30)))
		}
		r.Sections = []digest.Part{p}
		text := render.Slack(render.Digest(r, "x", "")).Blocks
		shown := strings.Count(text, "Kustomization k")
		if want := fmt.Sprintf("and %d more", n-shown+7); !strings.Contains(text, want) || shown == 0 {
			t.Errorf("%d findings, %d shown, and it does not say %q:\n%s", n, shown, want, text)
		}
	}
}

func TestDigestTimes(t *testing.T) {
	r := digested("x")
	for zone, want := range map[string]string{
		"Europe/Berlin": "since 2026-09-06 23:40 CEST", "": "since 2026-09-06 21:40 UTC", "Mars/Olympus": "since 2026-09-06 21:40 UTC", "Asia/Tokyo": "since 2026-09-07 06:40 JST",
	} {
		r.Zone = zone
		if got := render.Text(render.Digest(r, "x", "")); !strings.Contains(got, want) {
			t.Errorf("%q: no %q in\n%s", zone, want, got)
		}
	}
}

func TestQuietDigestIsOneLine(t *testing.T) {
	got := render.Text(render.Digest(quietReport("3 open pull requests of ops/home-gitops: 3 clear"), "morning", ""))
	const want = "🟢 morning: all quiet · 214 of 214 Kustomizations on prod are ready · 3 open pull requests of ops/home-gitops: 3 clear\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := quietReport("x")
	r.Late = true
	if got := strings.Split(render.Text(render.Digest(r, "morning", "")), "\n"); !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, "Late: ") }) {
		t.Errorf("it does not say that it is late: %q", got)
	}
}
