package policy

import "strings"

// File returns the rules as they are written, with their defaults filled in. It
// is the zero value for a nil policy. The caller must not change it.
func (p *Policy) File() File {
	if p == nil {
		return File{}
	}
	return p.file
}

// Object returns the object that a valid check asks about.
func (c *FluxCheck) Object() (kind, namespace, name string) {
	o := c.objects()[0]
	namespace, name, _ = strings.Cut(o.ref, "/")
	return o.kind, namespace, name
}
