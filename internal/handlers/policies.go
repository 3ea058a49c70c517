package handlers

import (
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"signalbox/internal/policy"
)

// policyCacheSize is the number of different policy texts that are kept
// compiled.
const policyCacheSize = 256

// Policies compiles policies, each text once.
type Policies struct {
	// operator is the policy of the configuration; nil for none.
	operator *policy.Policy
	compiled *lru.Cache[Document, compiledPolicy]
}

type compiledPolicy struct {
	policy   *policy.Policy
	problems []string
}

// NewPolicies makes a compiler; operator may be nil.
func NewPolicies(operator *policy.Policy) (*Policies, error) {
	cache, err := lru.New[Document, compiledPolicy](policyCacheSize)
	if err != nil {
		return nil, fmt.Errorf("policy cache: %w", err)
	}
	return &Policies{operator: operator, compiled: cache}, nil
}

// compile returns the policy of a document, or what is wrong with it. No
// document has neither.
func (p *Policies) compile(d *Document) (*policy.Policy, []string) {
	if d == nil {
		return nil, nil
	}
	if c, ok := p.compiled.Get(*d); ok {
		return c.policy, c.problems
	}
	pol, problems := policy.Load(d.Name, []byte(d.Text))
	c := compiledPolicy{policy: pol}
	for _, problem := range problems {
		c.problems = append(c.problems, problem.Error())
	}
	p.compiled.Add(*d, c)
	return c.policy, c.problems
}
