import { channel } from 'node:diagnostics_channel';

/*
 * What a gate does is published to channels of `node:diagnostics_channel`, and only while there are subscribers. Node
 * reports what a subscriber throws as an uncaught exception: a subscriber must catch its own errors.
 */

/** Gets each `Decision`: the same object as `onDecision`. */
export const decisionChannel = channel('tillgate:decision');
