package policy

// File returns the rules as they are written, with their defaults filled in. It
// is the zero value for a nil policy. The caller must not change it.
func (p *Policy) File() File {
	if p == nil {
		return File{}
	}
	return p.file
}
