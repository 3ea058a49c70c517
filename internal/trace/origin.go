package trace

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"
)

// Headers of a message on the bus.
const (
	// HeaderParent is the span that sent it, as W3C Trace Context writes it.
	HeaderParent = "traceparent"
	// HeaderEvent is the id of the event that led to it.
	HeaderEvent = "Signalbox-Event"
	// HeaderLinks are further spans that led to it, separated by commas.
	HeaderLinks = "Signalbox-Links"
)

// maxLinks bounds how many spans a message is linked to. Under a storm of events
// the first ones tell enough.
const maxLinks = 16

// Origin is where something comes from. The zero value says that it is not known.
type Origin struct {
	// Event is the id of the event that began it.
	Event string
	// Parent is the span that asked for it, and Links those that asked for the
	// same meanwhile; empty where nothing is traced.
	Parent string
	Links  []string
}

type eventKey struct{}

// WithEvent returns a context of what an event leads to. An empty id changes nothing.
func WithEvent(ctx context.Context, id string) context.Context {
	if id == "" {
		return ctx
	}
	return context.WithValue(ctx, eventKey{}, id)
}

// Event returns the id of the event that led to what a context is for, or "".
func Event(ctx context.Context) string {
	id, _ := ctx.Value(eventKey{}).(string)
	return id
}

// Of returns the origin of what is asked for with a context.
func Of(ctx context.Context) Origin {
	return Origin{Event: Event(ctx), Parent: write(otel.SpanContextFromContext(ctx))}
}

// Join adds another cause of the same: the event stays that of the first, whose
// trace goes on, and the span of the other is linked.
func (o Origin) Join(other Origin) Origin {
	if o.Event == "" {
		o.Event = other.Event
	}
	for _, span := range append([]string{other.Parent}, other.Links...) {
		switch {
		case span == "", span == o.Parent, slices.Contains(o.Links, span):
		case o.Parent == "":
			o.Parent = span
		case len(o.Links) < maxLinks:
			// What the copies of an origin share is not written to.
			o.Links = append(slices.Clip(o.Links), span)
		}
	}
	return o
}

// Later returns the origin of something that is only due at another time: it has a
// trace of its own, linked to the one that asked for it.
func (o Origin) Later() Origin {
	if o.Parent == "" {
		return o
	}
	return Origin{Event: o.Event, Links: append([]string{o.Parent}, o.Links...)}
}

// Inject puts an origin into the headers of a message.
func Inject(o Origin, set func(key, value string)) {
	for key, value := range map[string]string{HeaderEvent: oneLine(o.Event), HeaderParent: o.Parent, HeaderLinks: strings.Join(o.Links, ",")} {
		if value != "" {
			set(key, value)
		}
	}
}

// oneLine takes out of an id what would break a header.
func oneLine(id string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, id)
}

// Read reads an origin from the headers of a message. What is not well formed
// counts as absent.
func Read(get func(key string) string) Origin {
	o := Origin{Event: get(HeaderEvent), Parent: get(HeaderParent)}
	if links := get(HeaderLinks); links != "" {
		o.Links = strings.Split(links, ",")
		o.Links = o.Links[:min(len(o.Links), maxLinks)]
	}
	return o
}

// write returns a span as W3C Trace Context writes it, or "".
func write(span otel.SpanContext) string {
	if !span.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(otel.ContextWithSpanContext(context.Background(), span), carrier)
	return carrier[HeaderParent]
}

// parse reads what write wrote; what is not well formed gives an invalid one.
func parse(text string) otel.SpanContext {
	if text == "" {
		return otel.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{HeaderParent: text})
	return otel.SpanContextFromContext(ctx)
}
