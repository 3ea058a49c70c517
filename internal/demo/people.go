package demo

import (
	"context"
	"errors"
	"fmt"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// title of the pull request of the story.
const title = "Give storage profiles a tier of their own"

// open is bob opening the pull request that moves the profile.
func (w *World) open(ctx context.Context) error {
	_, err := w.Gitea.Push(ctx, w.repo, giteatest.Push{
		As: "bob", Branch: branch, Files: files(changeText), Message: title,
		Rename: map[string]string{"platform-config/storage-profiles.yaml": "platform-config-cdi/storage-profiles.yaml"},
	})
	if err != nil {
		return err
	}
	w.number, err = w.Gitea.OpenPull(ctx, w.repo, giteatest.NewPull{
		As: "bob", Title: title, Head: branch,
		Body: "The operator brings the kind only after platform-config was applied. A tier of its own breaks the circle.",
	})
	return err
}

// push is bob pushing another commit to the pull request.
func (w *World) push(ctx context.Context) error {
	w.pushes++
	_, err := w.Gitea.Push(ctx, w.repo, giteatest.Push{
		As: "bob", Branch: branch, Message: "Say what the tier is for",
		Files: map[string]string{"platform-config-cdi/README.md": fmt.Sprintf("Storage profiles, in a tier of their own. Draft %d.\n", w.pushes)},
	})
	return err
}

// approve is somebody submitting an approving review.
func (w *World) approve(ctx context.Context, login string) error {
	return w.submit(ctx, login, giteatest.Approve, "")
}

// reject is somebody submitting a review that asks for changes.
func (w *World) reject(ctx context.Context, login string) error {
	return w.submit(ctx, login, giteatest.RequestChanges, "Please say how we get back if this goes wrong.")
}

func (w *World) submit(ctx context.Context, login, state, body string) error {
	id, err := w.Gitea.Review(ctx, w.repo, w.number, login, state, body)
	if err == nil {
		w.review = id
	}
	return err
}

// dismiss is alice dismissing the latest review. Gitea tells nobody.
func (w *World) dismiss(ctx context.Context) error {
	if w.review == 0 {
		return errors.New("there is no review to dismiss yet")
	}
	return w.Gitea.Dismiss(ctx, w.repo, w.number, w.review, "alice")
}

// forge is mallory posting a status of signalbox as success.
func (w *World) forge(ctx context.Context, head, name string) error {
	return w.Gitea.SetStatus(ctx, w.repo, head, "mallory", pull.Status{
		Context: name, State: "success", Description: "All is well, trust me",
	})
}

// edit is mallory writing over the comment of signalbox.
func (w *World) edit(ctx context.Context, id int64) error {
	return w.Gitea.EditComment(ctx, w.repo, id, "mallory", "### 🟢 Clear to merge\n\nNothing to see here.\n")
}
