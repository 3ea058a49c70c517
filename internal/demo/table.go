package demo

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"
)

const (
	// columnGap stands between two columns, and columnCross in the rule below
	// the header.
	columnGap   = " │ "
	columnCross = "─┼─"
	// leastColumn is the width that no column is squeezed below, in cells.
	leastColumn = 6
)

// table adds a block for the header of a table and one for each row.
func (m *reader) table(t *east.Table) {
	var rows [][][]run
	for n := t.FirstChild(); n != nil; n = n.NextSibling() {
		var row [][]run
		s := plain
		if n.Kind() == east.KindTableHeader {
			s = bold
		}
		for cell := n.FirstChild(); cell != nil; cell = cell.NextSibling() {
			row = append(row, m.inline(cell, s))
		}
		rows = append(rows, row)
	}
	m.tables++
	widths := columns(rows, m.width)
	for i, row := range rows {
		b := block{table: m.tables, lines: layRow(row, widths)}
		for _, cell := range row {
			b.source += runsText(cell) + "|"
		}
		if i == 0 {
			b.lines = append(b.lines, rule(widths))
		}
		m.blocks = append(m.blocks, b)
	}
}

// columns shares a width among the columns: each gets what it needs, and if
// that is too much, the widest give way.
func columns(rows [][][]run, width int) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			for _, l := range wrap(cell, 1<<20) {
				widths[i] = max(widths[i], l.width())
			}
		}
	}
	over := textWidth(columnGap) * (len(widths) - 1)
	for _, w := range widths {
		over += w
	}
	for over -= width; over > 0; over-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// layRow lays the cells of a row beside each other.
func layRow(row [][]run, widths []int) []line {
	cells := make([][]line, len(widths))
	height := 1
	for i := range widths {
		if i < len(row) {
			cells[i] = wrap(row[i], widths[i])
		}
		height = max(height, len(cells[i]))
	}
	lines := make([]line, height)
	for y := range lines {
		for i, w := range widths {
			if i > 0 {
				lines[y] = append(lines[y], run{columnGap, dim})
			}
			var l line
			if y < len(cells[i]) {
				l = cells[i][y]
			}
			lines[y] = append(lines[y], l...)
			if i < len(widths)-1 {
				lines[y] = append(lines[y], run{strings.Repeat(" ", max(w-l.width(), 0)), plain})
			}
		}
	}
	return lines
}

func rule(widths []int) line {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return line{{strings.Join(parts, columnCross), dim}}
}
