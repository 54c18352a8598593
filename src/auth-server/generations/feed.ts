import type { Feed } from '../../generation/feed/feed';
import { movedSince } from '../storage/state';
import type { Store } from '../storage/store';

/**
 * The floors of the token server as a feed: those of deleted clients too. The entity tag, the revision, survives a
 * restart.
 */
export function feedOf(store: Store): Feed {
  return {
    get closed() {
      return store.closed;
    },
    via: [],
    retryAfterSeconds: 1,
    interruptions: 0,
    view() {
      // Read together: every later change has a revision of `nowMs` or more.
      const { state } = store;
      return {
        revision: String(state.revision),
        nowMs: store.nowMs(),
        nextMs: state.revision + 1,
        completeFromMs: 0,
        ageMs: undefined,
        async movedSince(ms, inOrder = false) {
          const floors = await movedSince(state, ms);
          if (inOrder) floors.sort((a, b) => a.movedAt - b.movedAt);
          return { count: floors.length, floors };
        },
      };
    },
    subscribe: (listener) => store.subscribe(listener),
  };
}
