//go:build unix && !linux

package realserver

import "syscall"

// ownGroup gives a server a process group, so that it ends together with what it started. Only Linux can
// also end it when the test dies without ending it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
