package pull

// Permission is what an account may do in a repository.
type Permission string

// The permissions, each with what those before it allow. An owner is also who
// administers the whole forge, or the organisation that has the repository.
const (
	PermissionNone  Permission = "none"
	PermissionRead  Permission = "read"
	PermissionWrite Permission = "write"
	PermissionAdmin Permission = "admin"
	PermissionOwner Permission = "owner"
)

// rank orders permissions; a word that is not known allows nothing.
func (p Permission) rank() int {
	switch p {
	case PermissionRead:
		return 1
	case PermissionWrite:
		return 2
	case PermissionAdmin:
		return 3
	case PermissionOwner:
		return 4
	}
	return 0
}

// AtLeast reports whether the permission allows what the other one does. A
// permission that is not known, as the zero value, allows nothing, and one that
// is asked for and not known is never there.
func (p Permission) AtLeast(o Permission) bool {
	return p.rank() >= o.rank() && (o.rank() > 0 || o == PermissionNone)
}
