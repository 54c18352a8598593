import { channel } from 'node:diagnostics_channel';

/*
 * What a gate does is published to channels of `node:diagnostics_channel`, and only while somebody subscribes. Node reports
 * what a subscriber throws as an uncaught exception: a subscriber catches for itself.
 */

/** Gets each `Decision`: the same object as `onDecision`. */
export const decisionChannel = channel('tillgate:decision');
