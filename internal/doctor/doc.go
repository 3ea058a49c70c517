// Package doctor judges an installation of signalbox: whether the gate is a
// gate, and what to do where it is not.
//
// It is pure. Whoever calls it looks at Gitea, the clusters and the bus, and
// hands over what was seen as the structs of this package; each of them has a
// method that judges it and returns [Finding] values. Texts that come from
// outside stay as they are in a Finding; [Report.Text] takes out what could
// steer a terminal.
//
// What could not be looked at is [Unknown], never [OK].
package doctor
