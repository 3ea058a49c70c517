package events

import "signalbox/internal/chat"

// ChatSaid says that somebody said something to signalbox. Its id is made of the
// platform's own, such as "slack/<event id>" or "matrix/<event id>".
type ChatSaid struct {
	chat.Message
}

// EventType implements [Payload].
func (ChatSaid) EventType() Type { return TypeChatSaid }

// BusSubject implements [Payload].
func (p ChatSaid) BusSubject() string { return chatSubject(p.Room.Platform) }

// ChatPressed says that somebody pressed a button of a card.
type ChatPressed struct {
	chat.Press
}

// EventType implements [Payload].
func (ChatPressed) EventType() Type { return TypeChatPressed }

// BusSubject implements [Payload].
func (p ChatPressed) BusSubject() string { return chatSubject(p.Room.Platform) }

// ChatSubjects are the subjects of all events of chats.
const ChatSubjects = SubjectRoot + ".chat.>"

func chatSubject(p chat.Platform) string { return SubjectRoot + ".chat." + string(p) }
