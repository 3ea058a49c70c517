package render

import (
	"fmt"
	"sort"
)

// maxParts bounds the parts of a talk: no place shows more.
const maxParts = 60

// fit leaves out so much of a talk that it fits, and says so: the items of long
// lists and the lines of long listings first, then whole parts from the end.
// Buttons stay.
func fit(t Talk, fits func(Talk) bool) Talk {
	if len(t) > maxParts {
		t = t.first(maxParts)
	}
	items, size := 200, 8192
	short := t.cut(items, size)
	for !fits(short) && (items > 1 || size > 128) {
		items, size = max(1, items/2), max(128, size/2)
		short = t.cut(items, size)
	}
	if fits(short) {
		return short
	}
	// The first number of parts that is too many.
	n := sort.Search(len(short), func(n int) bool { return !fits(short.first(n)) })
	return short.first(max(0, n-1))
}

// cut bounds the items of each list and the bytes of each listing.
func (t Talk) cut(items, size int) Talk {
	out := make(Talk, len(t))
	for i, p := range t {
		switch p := p.(type) {
		case Items:
			out[i] = p.cut(items)
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

// rest is the item that counts those that are left out.
func rest(of Items, text string) Item {
	if of[0].Sign == "" {
		return Item{Text: Line{Plain("…and " + text)}}
	}
	return Item{Sign: "…", Text: Line{Plain("and " + text)}}
}

// restOf is the item that counts those of some items that are left out. What one of
// them stood for counts too.
func restOf(of, left Items) Item {
	n := 0
	for _, item := range left {
		n += max(1, item.Stands)
	}
	out := rest(of, fmt.Sprintf("%d more", n))
	out.Stands = n
	return out
}

func (items Items) cut(most int) Items {
	out := make(Items, 0, min(len(items), most+1))
	for i, item := range items {
		if i == most {
			return append(out, restOf(items, items[most:]))
		}
		item.Under = item.Under.cut(most)
		out = append(out, item)
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
