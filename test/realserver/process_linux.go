package realserver

import "syscall"

// ownGroup gives a server a process group, so that it ends together with what it started, and lets the
// kernel kill it when the test dies without ending it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
