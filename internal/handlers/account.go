package handlers

import (
	"context"
	"fmt"
	"sync"

	"signalbox/internal/pull"
)

// SelfReader tells whose token it uses.
type SelfReader interface {
	Self(ctx context.Context) (pull.Person, error)
}

// Account is signalbox's own account, read once.
type Account struct {
	reader SelfReader

	mu   sync.Mutex
	self pull.Person
}

// NewAccount makes an account that is read when it is first asked for.
func NewAccount(reader SelfReader) *Account { return &Account{reader: reader} }

// Self returns the account, or an error while the forge cannot say.
func (a *Account) Self(ctx context.Context) (pull.Person, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.self.ID != 0 {
		return a.self, nil
	}
	self, err := a.reader.Self(ctx)
	if err != nil {
		return pull.Person{}, fmt.Errorf("learn signalbox's own account: %w", err)
	}
	a.self = self
	return self, nil
}
