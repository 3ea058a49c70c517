package fact

// Wish asks for a fact that is only collected while somebody reads it: most
// clusters have more kinds of objects, and most repositories more workflows,
// than any policy asks about. What is collected all the time needs no wish.
//
// The key alone says what is wished of Gitea. Of a cluster, one of the queries
// is set.
type Wish struct {
	Key      Key            `json:"key"`
	Objects  *ObjectsQuery  `json:"objects,omitempty"`
	Kured    *KuredQuery    `json:"kured,omitempty"`
	Renovate *RenovateQuery `json:"renovate,omitempty"`
}

// RenovateQuery asks about Renovate as a CronJob.
type RenovateQuery struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// WishObjects wishes for the answer to a query on a cluster.
func WishObjects(cluster string, q ObjectsQuery) Wish {
	return Wish{Key: ObjectsKey(cluster, q), Objects: &q}
}

// WishKured wishes for what kured does on a cluster.
func WishKured(cluster string, q KuredQuery) Wish {
	return Wish{Key: KuredKey(cluster, q), Kured: &q}
}

// WishRenovate wishes for what Renovate does as a CronJob on a cluster.
func WishRenovate(cluster string, q RenovateQuery) Wish {
	return Wish{Key: RenovateCronJobKey(cluster, q.Namespace, q.Name), Renovate: &q}
}
