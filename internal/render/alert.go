package render

import (
	"fmt"
	"time"

	"signalbox/internal/digest"
)

// Alert says what broke and what recovered. Zone is the name of the time zone in
// which times are shown, and page leads to how things stand now; both may be empty.
// What has been left out is counted.
func Alert(b digest.Batch, zone, page string) Talk {
	d := digester{chatRows, zoned(zone)}
	var t Talk
	broke, recovered := len(b.Broke)+b.MoreBroke, len(b.Recovered)+b.MoreRecovered
	switch {
	case broke+recovered == 1:
		// One line says it.
	case broke == 0:
		t = append(t, Paragraph{Plain("✅ "), Strong(fmt.Sprintf("%d recovered", recovered))})
	case recovered == 0:
		t = append(t, Paragraph{Plain(alertSign(b) + " "), Strong(count(broke, "new problem"))})
	default:
		t = append(t, Paragraph{Plain(alertSign(b) + " "), Strong(fmt.Sprintf("%s, %d recovered", count(broke, "new problem"), recovered))})
	}
	var items Items
	for i := range b.Broke[:min(len(b.Broke), 2*d.rows.findings)] {
		items = append(items, d.broke(&b.Broke[i]))
	}
	if more := broke - len(items); more > 0 {
		items = append(items, moreOf(more))
	}
	if len(items) > 0 {
		t = append(t, items)
	}
	items = nil
	for i := range b.Recovered[:min(len(b.Recovered), 2*d.rows.recovered)] {
		items = append(items, d.over(&b.Recovered[i]))
	}
	if more := recovered - len(items); more > 0 {
		items = append(items, moreOf(more))
	}
	if len(items) > 0 {
		t = append(t, items)
	}
	if page != "" {
		t = append(t, Small{Link("How it stands now", page)})
	}
	return t
}

// alertSign is the sign of the worst that broke.
func alertSign(b digest.Batch) string {
	worst := digest.Notable
	for i := range b.Broke {
		worst = worse(worst, &b.Broke[i].Finding)
	}
	return severitySign(worst)
}

// broke is one that broke, with what follows from it.
func (d digester) broke(n *digest.Notice) Item {
	f := n.Finding
	f.Since, f.New = n.Began, false
	return d.finding(&f, n.More)
}

// over is one that recovered, and how long it took.
func (d digester) over(n *digest.Notice) Item {
	l := append(Line{}, d.gone(&n.Finding)...)
	if n.Ended.After(n.Began) && !n.Began.IsZero() {
		l = append(l, Plain(" · for "+lasted(n.Ended.Sub(n.Began))))
	}
	return Item{Sign: "✅", Text: append(Line{Plain("Recovered: ")}, l...)}
}

// lasted writes how long something was so, for people.
func lasted(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < 2*time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour")
	default:
		return count(int(d/(24*time.Hour)), "day")
	}
}
