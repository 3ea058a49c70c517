// Package agent is how a cluster is watched from within it: an agent there reads its
// objects and tells a hub, which is signalbox itself, what it sees. The hub needs no
// way to the cluster and no right in it, and the agent has no right but to speak with
// its hub about that one cluster.
//
// Two ends, on one line ([Line]):
//
//   - [Hub] runs in every replica of signalbox. It takes facts and heartbeats of
//     agents, looks at each as at anything from outside, and writes it where all facts
//     are. It tells agents what verdicts wish for.
//   - [Remote] runs in the agent. To the watcher of the cluster it is the place where
//     facts are written; it holds a mirror of what the hub holds of that cluster.
//
// An agent asks on hub subjects of its own cluster, signalbox.v1.hub.CLUSTER.VERB, and
// hears on agent subjects, signalbox.v1.agent.CLUSTER.VERB; answers to it come below
// [Inbox]. That is all that its user of NATS needs to be allowed: no stream, and nothing
// of another cluster. The number changes when the two ends would misunderstand another.
//
// What is promised: a fact is written where the agent has seen the one that is held, so
// two agents of one cluster, or a late request, put no old one back. A heartbeat counts
// from when the hub hears it, by the clock of the hub; an agent whose clock is wrong is
// refused, because times in its facts would be wrong too. An agent that falls silent is
// a cluster that falls silent: its facts are unknown. Nothing is stored on the way.
//
// To test code that uses it, join both ends with an in-process line, as the tests here
// do.
package agent
