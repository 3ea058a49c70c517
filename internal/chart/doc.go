// Package chart draws how things went: the trend of a digest as a picture, and as
// words for those who cannot see it. It is pure; the same samples give the same
// bytes.
package chart
