package trace

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
)

// Config says where traces go.
type Config struct {
	// Endpoint is the address of a receiver of OTLP over HTTP, such as
	// http://localhost:4318/v1/traces.
	Endpoint *url.URL
	// Ratio is the share of what happens that is traced, from 0 to 1.
	Ratio float64
	// Version is that of signalbox, and Replica the name of this process among
	// others.
	Version, Replica string
}

// Tracer begins spans. A nil one begins none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   otel.Tracer
}

// scope names this program among what makes spans.
const scope = "signalbox"

// New makes a tracer that sends spans in the background. It makes no call: a
// receiver that is not there costs spans and nothing else. The function failed is
// called with what went wrong, perhaps at the same time from several goroutines.
//
// What a receiver asks for beside its address, such as a header with a token or a
// certificate to trust, is taken from the variables OTEL_EXPORTER_OTLP_HEADERS and
// OTEL_EXPORTER_OTLP_CERTIFICATE, which belong to the standard.
func New(ctx context.Context, c Config, failed func(error)) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.Endpoint.String()))
	if err != nil {
		return nil, fmt.Errorf("traces to %s: %w", c.Endpoint.Redacted(), err)
	}
	return NewTo(reporting{exporter, failed}, c), nil
}

// NewTo makes a tracer that hands spans to an exporter; the endpoint of the
// configuration is not used.
func NewTo(exporter sdk.SpanExporter, c Config) *Tracer {
	about := resource.NewSchemaless(
		attribute.String("service.name", scope),
		attribute.String("service.version", c.Version),
		attribute.String("service.instance.id", c.Replica),
	)
	provider := sdk.NewTracerProvider(
		sdk.WithResource(about),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Ratio))),
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(time.Second)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer(scope)}
}

// Close sends what was not sent yet, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}

// reporting tells of what could not be sent. The library would tell a handler
// that is global.
type reporting struct {
	sdk.SpanExporter
	failed func(error)
}

// ExportSpans implements [sdk.SpanExporter].
func (r reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !errors.Is(err, context.Canceled) {
		r.failed(err)
	}
	return nil
}

// Kind is the part that a span has in a conversation.
type Kind = otel.SpanKind

// The parts of spans.
const (
	// Inside is work of this process.
	Inside = otel.SpanKindInternal
	// Takes answers a request, Asks makes one.
	Takes = otel.SpanKindServer
	Asks  = otel.SpanKindClient
	// Sends puts a message on the bus, Handles takes one off it.
	Sends   = otel.SpanKindProducer
	Handles = otel.SpanKindConsumer
)

// Attr is something that a span tells. Make it with [Text] or [Number].
type Attr = attribute.KeyValue

// Text is an attribute with a text.
func Text(key, value string) Attr { return attribute.String("signalbox."+key, value) }

// Number is an attribute with a number.
func Number(key string, value int64) Attr { return attribute.Int64("signalbox."+key, value) }

// Span is a piece of work in a trace. The zero value is none, and takes
// everything.
type Span struct{ span otel.Span }

// Begin begins a span below the one of the context, or else a trace of its own.
func (t *Tracer) Begin(ctx context.Context, kind Kind, name string, attrs ...Attr) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name, otel.WithSpanKind(kind), otel.WithAttributes(attrs...))
	return ctx, Span{span}
}

// goOn begins a span below the one that an origin names, and links to the others.
func (t *Tracer) goOn(ctx context.Context, o Origin, name string, attrs []Attr) (context.Context, Span) {
	if parent := parse(o.Parent); parent.IsValid() {
		ctx = otel.ContextWithRemoteSpanContext(ctx, parent)
	}
	options := []otel.SpanStartOption{otel.WithSpanKind(Handles), otel.WithAttributes(attrs...)}
	for _, l := range o.Links {
		if link := parse(l); link.IsValid() {
			options = append(options, otel.WithLinks(otel.Link{SpanContext: link}))
		}
	}
	ctx, span := t.tracer.Start(ctx, name, options...)
	return ctx, Span{span}
}

// Resume begins a span for a message of the bus: below the span that its origin
// names, linked to the others that led to it. The context has the event of the
// origin from then on, also without a tracer.
func (t *Tracer) Resume(ctx context.Context, o Origin, name string, attrs ...Attr) (context.Context, Span) {
	ctx = WithEvent(ctx, o.Event)
	if t == nil {
		return ctx, Span{}
	}
	return t.goOn(ctx, o, name, attrs)
}

// Start begins a span below the one of the context, and none where that has
// none.
func Start(ctx context.Context, kind Kind, name string, attrs ...Attr) (context.Context, Span) {
	above := otel.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := above.TracerProvider().Tracer(scope).Start(ctx, name, otel.WithSpanKind(kind), otel.WithAttributes(attrs...))
	return ctx, Span{span}
}

// Tell adds attributes.
func (s Span) Tell(attrs ...Attr) {
	if s.span != nil {
		s.span.SetAttributes(attrs...)
	}
}

// End ends the span. Of an error only that there was one is told: its text may
// repeat what somebody wrote.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}
