package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"signalbox/internal/digest"
)

func (s *server) registerDigests(api huma.API) {
	register(api, huma.Operation{
		OperationID: "list-digests", Path: "/digests", Tags: []string{tagDigests},
		Summary:     "List the digests that were made",
		Description: "The newest first. What each found is in the digest itself.",
	}, s.listDigests)
	register(api, huma.Operation{
		OperationID: "get-digest-now", Path: "/digests/now", Tags: []string{tagDigests},
		Summary:     "Show what a digest would find now",
		Description: "What is not as it should be at this moment, on the clusters, in the pipelines and at the gate.",
	}, s.digestNow)
	register(api, huma.Operation{
		OperationID: "get-digest", Path: "/digests/{name}/{scheduled}", Tags: []string{tagDigests},
		Summary: "Show a digest", Description: "One digest as it was made.",
		Errors: []int{http.StatusNotFound},
	}, s.getDigest)
	register(api, huma.Operation{
		OperationID: "get-trend", Path: "/trend", Tags: []string{tagDigests},
		Summary:     "Show how the counts went",
		Description: "Samples of the last 30 days, the oldest first. If more than 10000 match, the newest are here.",
	}, s.trend)
}

// DigestsQuery says which digests are wanted.
type DigestsQuery struct {
	Name string `query:"name" maxLength:"256" example:"morning" doc:"Only those of this name in the configuration."`
	Paging
}

func (s *server) listDigests(_ context.Context, q *DigestsQuery) (Page[DigestSummary], error) {
	at, err := place("digests", q.Cursor, 2)
	if err != nil {
		return Page[DigestSummary]{}, err
	}
	var before digest.Report
	if at != nil {
		if before.Scheduled, err = time.Parse(time.RFC3339Nano, at[0]); err != nil {
			return Page[DigestSummary]{}, badCursor(q.Cursor)
		}
		before.Name = at[1]
	}
	reports := slices.Clone(s.Digests.Reports())
	reports = slices.DeleteFunc(reports, func(r digest.Report) bool { return q.Name != "" && r.Name != q.Name })
	total := len(reports)
	slices.SortStableFunc(reports, compareReports)
	if at != nil {
		reports = slices.DeleteFunc(reports, func(r digest.Report) bool { return compareReports(r, before) <= 0 })
	}
	return paged(reports, total, q.Paging, newDigestSummary, func(r digest.Report) string {
		return cursor("digests", r.Scheduled.UTC().Format(time.RFC3339Nano), r.Name)
	}), nil
}

// compareReports puts the newest first.
func compareReports(a, b digest.Report) int {
	return cmp.Or(b.Scheduled.Compare(a.Scheduled), cmp.Compare(a.Name, b.Name))
}

// DigestPath names a digest.
type DigestPath struct {
	Name      string `path:"name" maxLength:"256" example:"morning" doc:"The name of the digest in the configuration."`
	Scheduled string `path:"scheduled" format:"date-time" example:"2026-09-07T06:00:00Z" doc:"The time that the schedule names, as scheduled in the list has it."`
}

func (s *server) getDigest(_ context.Context, at *DigestPath) (Digest, error) {
	scheduled, err := time.Parse(time.RFC3339, at.Scheduled)
	if err != nil {
		return Digest{}, invalid("path.scheduled", at.Scheduled, "is no time; take scheduled as the list of digests has it, such as 2026-09-07T06:00:00Z")
	}
	reports := s.Digests.Reports()
	for i := range reports {
		if r := &reports[i]; r.Name == at.Name && r.Scheduled.Equal(scheduled) {
			return s.names().digest(r), nil
		}
	}
	return Digest{}, huma.Error404NotFound(fmt.Sprintf("There is no digest %q of %s, or it is kept no longer; %s/digests lists those that there are.", clip(at.Name), scheduled.UTC().Format(time.RFC3339), Prefix))
}

func (s *server) digestNow(context.Context, *nothing) (DigestNow, error) {
	found := s.Digests.Now()
	names := s.names()
	out := DigestNow{Counts: newCounts(found.Counts), Sections: []Section{}}
	for _, section := range digest.Sections() {
		part := digest.Part{Section: section, Summary: found.Summaries[section]}
		for _, f := range found.Findings {
			if f.Section == section {
				part.Findings = append(part.Findings, f)
			}
		}
		for _, b := range found.Blind {
			if b.Section == section {
				part.Blind = append(part.Blind, b)
			}
		}
		out.Sections = append(out.Sections, names.section(part))
	}
	return out, nil
}

// TrendQuery says which samples are wanted.
type TrendQuery struct {
	Since string `query:"since" format:"date-time" example:"2026-09-01T00:00:00Z" doc:"Only from this time on."`
}

// maxSamples bounds a trend: 30 days with a sample every five minutes are fewer.
const maxSamples = 10_000

func (s *server) trend(_ context.Context, q *TrendQuery) (Trend, error) {
	since, err := moment("since", q.Since)
	if err != nil {
		return Trend{}, err
	}
	samples := s.Digests.Trend()
	first := slices.IndexFunc(samples, func(x digest.Sample) bool { return !x.At.Before(since) })
	if first < 0 {
		first = len(samples)
	}
	samples = samples[first:]
	return Trend{
		Total: len(samples),
		Samples: list(samples[max(0, len(samples)-maxSamples):], func(x digest.Sample) Sample {
			return Sample{At: utc(x.At), Counts: newCounts(x.Counts)}
		}),
	}, nil
}
