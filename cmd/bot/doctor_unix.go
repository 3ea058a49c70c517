//go:build linux || darwin

package main

import "syscall"

// mayWrite is W_OK of access(2).
const mayWrite = 2

// writable reports whether this process may write to a folder.
func writable(dir string) bool { return syscall.Access(dir, mayWrite) == nil }

// freeSpace returns how many bytes there are for this user, or -1.
func freeSpace(dir string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // its type differs between systems
}
