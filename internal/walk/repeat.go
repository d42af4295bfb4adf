package walk

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// leastRepeated is how many bytes what is repeated has at least: shorter values, as a user's name, are the same by chance.
const leastRepeated = 8

// repeat is a Secret or ConfigMap that says the value that a Secret, which was made for a copy, says below key.
type repeat struct {
	client.Object
	of    client.ObjectKey
	key   string
	value []byte
}

// repeatsOf are what repeats the Secrets among operands. Nothing is known on a cluster that stays: Secrets of others are not read.
func (w *walk) repeatsOf(ctx context.Context, operands map[string]observe.Operand) (repeats []repeat, err error) {
	own := func(made observe.Operand) bool { return made.Kind == observe.KindSecret && made.Direct }
	if !w.Provider.Disposable() || !slices.ContainsFunc(slices.Collect(maps.Values(operands)), own) {
		return nil, nil
	}
	var secrets corev1.SecretList
	var configs corev1.ConfigMapList
	for _, list := range []client.ObjectList{&secrets, &configs} {
		if err := w.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list what may repeat Secrets: %w", err)
		}
	}
	var all []client.Object
	for i := range secrets.Items {
		all = append(all, &secrets.Items[i])
	}
	for i := range configs.Items {
		all = append(all, &configs.Items[i])
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if made := operands[observe.Operand{Kind: observe.KindSecret, Namespace: secret.Namespace, Name: secret.Name}.String()]; !own(made) {
			continue
		}
		for key, value := range secret.Data {
			for _, other := range all {
				if other != client.Object(secret) && len(value) >= leastRepeated && hasText(other, value) {
					repeats = append(repeats, repeat{other, client.ObjectKeyFromObject(secret), key, value})
				}
			}
		}
	}
	return repeats, nil
}

// hasText reports whether the data of a Secret or a ConfigMap have value in them.
func hasText(o client.Object, value []byte) bool {
	switch o := o.(type) {
	case *corev1.Secret:
		return slices.ContainsFunc(slices.Collect(maps.Values(o.Data)), func(said []byte) bool { return bytes.Contains(said, value) })
	case *corev1.ConfigMap:
		return slices.ContainsFunc(slices.Collect(maps.Values(o.Data)), func(said string) bool { return bytes.Contains([]byte(said), value) })
	}
	return false
}

// seeRepeated tells, now that Secrets of a copy were made anew, which of what repeated them do not say any more what these said before, by their names. What did so under the release before,
// as was says, is waited for.
func (w *walk) seeRepeated(ctx context.Context, o *newObject, repeats []repeat, was map[string]bool) (follow map[string]bool, err error) {
	others := repeats[:0]
	for _, r := range repeats {
		var secret corev1.Secret
		switch err := w.Client.Get(ctx, r.of, &secret); {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("read Secret %s: %w", r.of, err)
		case err == nil && !bytes.Contains(secret.Data[r.key], r.value): // it says something else than before
			others = append(others, r)
		}
	}
	limit := boldLimit
	if slices.Contains(slices.Collect(maps.Values(was)), true) {
		limit = judge.EffectLimit
	}
	err = lookUntil(ctx, limit, quickPause, func() (bool, error) {
		follow = map[string]bool{}
		for _, r := range others {
			err := w.Client.Get(ctx, client.ObjectKeyFromObject(r.Object), r.Object)
			if client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("read what repeats Secret %s: %w", r.of, err)
			}
			name := o.repeating(r.Object)
			before, known := follow[name]
			follow[name] = (before || !known) && (apierrors.IsNotFound(err) || !hasText(r.Object, r.value))
		}
		return !slices.Contains(slices.Collect(maps.Values(follow)), false), nil
	})
	return follow, err
}

// repeating names what repeats a Secret that was made for a copy, so that it is called the same for each copy.
func (o *newObject) repeating(other client.Object) string {
	kind := "ConfigMap"
	if _, is := other.(*corev1.Secret); is {
		kind = observe.KindSecret
	}
	return kind + " " + o.named(client.ObjectKeyFromObject(other).String())
}
