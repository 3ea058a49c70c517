package agent

import (
	"context"
	"fmt"
	"time"

	"signalbox/internal/fact"
)

// callTime bounds one request. It is longer than the hub takes for one at most.
const callTime = 12 * time.Second

// askHub asks the hub for something about a cluster.
func askHub[T any](ctx context.Context, line Line, cluster, verb string, of any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	out, err := request[T](ctx, line, hubSubject(cluster, verb), of)
	if err != nil {
		return out, fmt.Errorf("ask the hub (%s): %w", verb, err)
	}
	return out, nil
}

// listAll reads every page of what the hub holds of a cluster.
func listAll(ctx context.Context, line Line, cluster string) (listAnswer, error) {
	var all listAnswer
	var l list
	for {
		page, err := askHub[listAnswer](ctx, line, cluster, verbList, l)
		if err != nil {
			return listAnswer{}, err
		}
		all.Facts, all.Store = append(all.Facts, page.Facts...), page.Store
		if !page.More || page.Last == "" {
			return all, nil
		}
		l.After = page.Last
	}
}

// Facts returns what the hub holds of a cluster, for whoever only reads.
func Facts(ctx context.Context, line Line, cluster string) ([]fact.Fact, error) {
	all, err := listAll(ctx, line, cluster)
	if err != nil {
		return nil, err
	}
	facts := make([]fact.Fact, len(all.Facts))
	for i, h := range all.Facts {
		facts[i] = h.Fact
	}
	return facts, nil
}

// Answers asks the agent of a cluster for a sign of life, and returns why there is none.
func Answers(ctx context.Context, line Line, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := request[awaitAnswer](ctx, line, agentSubject(cluster, verbAwait), await{Within: time.Second})
	return err
}
