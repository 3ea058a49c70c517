package chart

import (
	"fmt"
	"strings"
	"time"

	"signalbox/internal/digest"
)

// Alt says in words what [Trend] shows of the same samples, in one line.
func Alt(samples []digest.Sample, now time.Time) string {
	samples = within(samples, now)
	if len(samples) == 0 {
		return "There are no samples of the last 30 days."
	}
	last := samples[len(samples)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "The last %d days, until %s.", Days, last.At.UTC().Format("2 January 15:04 UTC"))
	b.WriteString(readyWords(samples, last))
	b.WriteString(openWords(samples, last))
	if gaps := gone(samples); gaps > 0 {
		fmt.Fprintf(&b, " Nothing was sampled for %d hours in all.", int(gaps.Round(time.Hour)/time.Hour))
	}
	return b.String()
}

const day = "2 January"

// readyWords says how many objects were ready.
func readyWords(samples []digest.Sample, last digest.Sample) string {
	share := func(s digest.Sample) float64 { return 100 * float64(s.Ready) / float64(s.Total) }
	var worst *digest.Sample
	for i := range samples {
		if s := &samples[i]; s.Total > 0 && (worst == nil || share(*s) < share(*worst)) {
			worst = s
		}
	}
	if worst == nil || last.Total <= 0 {
		return " No object of Flux is watched now."
	}
	text := fmt.Sprintf(" Ready now: %s of the objects of Flux (%d of %d)", percent(share(last)), last.Ready, last.Total)
	if share(*worst) < share(last) {
		text += fmt.Sprintf("; the least were %s on %s", percent(share(*worst)), worst.At.UTC().Format(day))
	}
	return text + "."
}

// openWords says how many findings were open.
func openWords(samples []digest.Sample, last digest.Sample) string {
	most := last
	for _, s := range samples {
		if total(s) > total(most) {
			most = s
		}
	}
	text := fmt.Sprintf(" Open findings now: %d", total(last))
	var parts []string
	for _, section := range digest.Sections() {
		if n := last.Open[section]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", section, n))
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if total(most) > total(last) {
		text += fmt.Sprintf("; the most were %d on %s", total(most), most.At.UTC().Format(day))
	}
	return text + "."
}

// gone is how long nothing was sampled, between the first sample and the last.
func gone(samples []digest.Sample) time.Duration {
	var sum time.Duration
	for i := 1; i < len(samples); i++ {
		if d := samples[i].At.Sub(samples[i-1].At); d > longest {
			sum += d
		}
	}
	return sum
}
