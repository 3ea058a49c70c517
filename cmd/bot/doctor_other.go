//go:build !linux && !darwin

package main

// writable is true where it cannot be asked; a write tells.
func writable(string) bool { return true }

// freeSpace is not known.
func freeSpace(string) int64 { return -1 }
