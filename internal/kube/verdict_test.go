package kube

import "testing"

func TestUncounted(t *testing.T) {
	for message, want := range map[string]string{
		"Available: 1/3":                                               "Available: not all of 3",
		"Pending termination: 2":                                       "Pending termination",
		"2 out of 3 new replicas have been updated...":                 "not all of 3 new replicas have been updated...",
		"1 of 2 updated replicas are available...":                     "not all of 2 updated replicas are available...",
		"Job in progress. success:0, active: 1, failed: 2":             "Job in progress",
		"Job Failed. failed: 3/1":                                      "Job Failed. failed: 3/1",
		"Deployment generation is 3, but latest observed generation 2": "Deployment generation is 3, but latest observed generation 2",
		"no matches for kind X in version 1/2":                         "no matches for kind X in version 1/2",
		"":                                                             "",
	} {
		if got := uncounted(message); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
}
