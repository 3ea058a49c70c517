// Package fluxgraph draws what depends on what among the objects of Flux on one
// cluster: sources on the left, and every object to the right of what it waits for.
//
// It is pure and goes in four steps: [Read] makes objects of facts, [New] a graph of
// objects, [Graph.View] chooses what of it is shown, and [View.Layout] gives each part
// its place, for [Picture.SVG] to write. Nothing is left out without a word: what a
// view does not show by itself is counted in a group, and every reference to an
// object that is not there is a node of its own.
//
// The layout is that of Sugiyama: columns by the longest path, an order within each
// column by barycenters, and places by least squares. Circles are broken for it, and
// marked.
package fluxgraph
