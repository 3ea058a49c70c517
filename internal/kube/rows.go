package kube

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// cell is what a column found in an object.
type cell struct {
	// verdict is what a test said, why in one line. Both are zero in columns
	// that test nothing.
	verdict verdict
	why     string
	// data is what a column that tests nothing took of the object. It is never
	// changed.
	data any
	// since is when the cell came to say this, in nanoseconds. If it was only
	// listed like this, it may have been so for longer.
	since  int64
	listed bool
	// version is that of the object with which it came to say this, or 0.
	version uint64
}

// says reports whether two cells say the same.
func (c cell) says(o cell) bool {
	return c.verdict == o.verdict && c.why == o.why && reflect.DeepEqual(c.data, o.data)
}

// column is what is read of each object of a feed. Two columns with one id read
// the same.
type column struct {
	id   string
	read func(object map[string]any) cell
}

// row is all that is kept of an object: one of ten thousand must not cost its
// kilobytes.
type row struct {
	objectName
	uid   string
	cells []cell
	// version is that of the object, or 0 if it has no order.
	version uint64
}

type objectName struct{ namespace, name string }

// rows are the objects of a feed. They are the store of its reflector, which
// calls the methods of [cache.ReflectorStore] one at a time.
type rows struct {
	columns []column
	// changed is called, without the lock, after a cell says something else, and
	// listed after the first complete list.
	changed, listed func()
	// counted is called for each object that was read.
	counted func()

	mu     sync.Mutex
	rows   map[objectName]*row
	former *rows
	// version is that of the API server to which the rows are complete.
	version  string
	complete bool
}

// read makes the row of an object.
func (s *rows) read(u *unstructured.Unstructured) *row {
	s.counted()
	r := &row{
		objectName: objectName{u.GetNamespace(), u.GetName()},
		uid:        string(u.GetUID()),
		cells:      make([]cell, len(s.columns)),
		version:    numbered(u.GetResourceVersion()),
	}
	for i, c := range s.columns {
		r.cells[i] = readCell(c, u.Object)
	}
	return r
}

// readCell reads one cell. A custom resource holds what it likes, and a library
// that stumbles over it must not end the program.
func readCell(c column, object map[string]any) (read cell) {
	defer func() {
		if p := recover(); p != nil {
			read = cell{verdict: unclear, why: oneLine(steady(fmt.Sprintf("the object could not be read: %v", p)))}
		}
	}()
	return c.read(object)
}

// GetObjectKind, DeepCopyObject and GetObjectMeta let a reflector carry a row
// from a list to the store.
func (r *row) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object]. A row is not changed once it is
// stored.
func (r *row) DeepCopyObject() runtime.Object { c := *r; return &c }

// GetObjectMeta implements [metav1.ObjectMetaAccessor].
func (r *row) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.namespace, Name: r.name}
}

// rowList is a list of objects of which only the rows are left.
type rowList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*row
}

// DeepCopyObject implements [runtime.Object].
func (l *rowList) DeepCopyObject() runtime.Object { c := *l; return &c }

// Transformer implements [cache.TransformingStore], so that a list that is
// streamed is kept as rows from the first object on.
func (s *rows) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			return s.read(u), nil
		}
		return obj, nil
	}
}

func (s *rows) rowOf(obj any) (*row, error) {
	switch o := obj.(type) {
	case *row:
		return o, nil
	case *unstructured.Unstructured:
		return s.read(o), nil
	default:
		return nil, fmt.Errorf("cannot keep a %T", obj)
	}
}

// Add implements [cache.ReflectorStore].
func (s *rows) Add(obj any) error {
	r, err := s.rowOf(obj)
	if err != nil {
		return err
	}
	now := time.Now().UnixNano()
	s.mu.Lock()
	old := s.rows[r.objectName]
	news := r.follow(old, now, false)
	s.rows[r.objectName] = r
	s.seen(obj)
	s.mu.Unlock()
	if news {
		s.changed()
	}
	return nil
}

// Update implements [cache.ReflectorStore].
func (s *rows) Update(obj any) error { return s.Add(obj) }

// Delete implements [cache.ReflectorStore].
func (s *rows) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	name := objectName{m.GetNamespace(), m.GetName()}
	s.mu.Lock()
	_, had := s.rows[name]
	delete(s.rows, name)
	s.seen(obj)
	s.mu.Unlock()
	if had {
		s.changed()
	}
	return nil
}

// Replace implements [cache.ReflectorStore]: it takes a complete list.
func (s *rows) Replace(list []any, version string) error {
	all := make(map[objectName]*row, len(list))
	now := time.Now().UnixNano()
	for _, obj := range list {
		r, err := s.rowOf(obj)
		if err != nil {
			return err
		}
		all[r.objectName] = r
	}
	s.mu.Lock()
	before, first := s.rows, !s.complete
	if s.former != nil {
		before = s.former.inherit(s.columns)
		s.former = nil
	}
	news := len(all) != len(before)
	for name, r := range all {
		news = r.follow(before[name], now, first) || news
	}
	s.rows, s.version, s.complete = all, version, true
	s.mu.Unlock()
	switch {
	case first:
		s.listed()
	case news:
		s.changed()
	}
	return nil
}

// Resync implements [cache.ReflectorStore].
func (*rows) Resync() error { return nil }

// UpdateResourceVersion implements [cache.ResourceVersionUpdater]. A bookmark
// comes here too.
func (s *rows) UpdateResourceVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// seen takes the version of an event. The lock is held.
func (s *rows) seen(obj any) {
	if m, err := meta.Accessor(obj); err == nil && m.GetResourceVersion() != "" {
		s.version = m.GetResourceVersion()
	}
}

// follow takes over since when the cells say what they say, and reports whether
// one says something else than before. Old is nil for an object that is new.
func (r *row) follow(old *row, now int64, listed bool) (news bool) {
	if old != nil && old.uid != r.uid {
		old = nil
	}
	for i := range r.cells {
		c := &r.cells[i]
		c.since, c.listed, c.version = now, listed, r.version
		if old == nil {
			news = true
			continue
		}
		before := old.cells[i]
		if before.verdict == c.verdict {
			c.since, c.listed, c.version = before.since, before.listed, before.version
		}
		news = news || !before.says(*c)
	}
	return news
}

// inherit returns the rows with the cells of other columns, as far as there are
// such.
func (s *rows) inherit(columns []column) map[objectName]*row {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = s.index(c.id)
	}
	all := make(map[objectName]*row, len(s.rows))
	for name, old := range s.rows {
		r := &row{objectName: name, uid: old.uid, cells: make([]cell, len(columns))}
		for i, from := range at {
			if from >= 0 {
				r.cells[i] = old.cells[from]
			}
		}
		all[name] = r
	}
	return all
}

// index returns where a column is, or -1.
func (s *rows) index(id string) int {
	for i, c := range s.columns {
		if c.id == id {
			return i
		}
	}
	return -1
}

// covers reports whether all of the columns are there.
func (s *rows) covers(columns map[string]column) bool {
	for id := range columns {
		if s.index(id) < 0 {
			return false
		}
	}
	return true
}

func (s *rows) isComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}

// each calls for every row and one of its cells, in no order, and returns the
// version that this is the state at, or "" if the version has no order. What is
// called must not call the rows.
func (s *rows) each(at int, do func(*row, cell)) (version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		do(r, r.cells[at])
	}
	return ordered(s.version)
}

func (s *rows) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}

// numbered returns a version as a number, or 0 if it is none, or too long.
func numbered(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// ordered returns a version that can be compared, or "".
func ordered(version string) string {
	if strings.Trim(version, "0123456789") != "" {
		return ""
	}
	return version
}
