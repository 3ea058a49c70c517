package render

import "fmt"

// fit leaves out so much of a talk that it fits, and says so: the items of long
// lists and the lines of long listings first, then whole parts from the end.
// Buttons stay.
func fit(t Talk, fits func(Talk) bool) Talk {
	items, size := 200, 8192
	short := t.cut(items, size)
	for !fits(short) && (items > 1 || size > 128) {
		items, size = max(1, items/2), max(128, size/2)
		short = t.cut(items, size)
	}
	for n := len(short) - 1; n > 0 && !fits(short); n-- {
		short = t.cut(items, size).first(n)
	}
	return short
}

// cut bounds the items of each list and the bytes of each listing.
func (t Talk) cut(items, size int) Talk {
	out := make(Talk, len(t))
	for i, p := range t {
		switch p := p.(type) {
		case Items:
			if more := len(p) - items; more > 0 {
				p = append(p[:items:items], Line{Plain(fmt.Sprintf("…and %d more", more))})
			}
			out[i] = p
		case Fields:
			if more := len(p) - items; more > 0 {
				p = append(p[:items:items], Field{"…", Line{Plain(fmt.Sprintf("and %d more", more))}})
			}
			out[i] = p
		case Listing:
			out[i] = Listing(cutLines(string(p), size))
		default:
			out[i] = p
		}
	}
	return out
}

// first keeps the first parts, and the buttons.
func (t Talk) first(n int) Talk {
	out := append(t[:n:n], Small{Plain("…and more, left out because it is too long")})
	for _, p := range t[n:] {
		if b, ok := p.(Buttons); ok {
			out = append(out, b)
		}
	}
	return out
}
