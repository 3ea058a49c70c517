package pull_test

import (
	"testing"

	"signalbox/internal/pull"
)

func TestPermissionAtLeast(t *testing.T) {
	order := []pull.Permission{
		pull.PermissionNone, pull.PermissionRead, pull.PermissionWrite, pull.PermissionAdmin, pull.PermissionOwner,
	}
	for i, p := range order {
		for j, o := range order {
			if got := p.AtLeast(o); got != (i >= j) {
				t.Errorf("%s at least %s: %v", p, o, got)
			}
		}
		for _, unknown := range []pull.Permission{"", "emperor"} {
			if p.AtLeast(unknown) || unknown.AtLeast(p) && p != pull.PermissionNone {
				t.Errorf("%s and the unknown %q compare", p, unknown)
			}
		}
	}
}
