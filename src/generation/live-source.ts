import type { GenerationSource } from './source';

/**
 * A source in the gate's own process that knows every floor at every moment: it is asked with every request, so nothing
 * is read ahead and nothing goes stale. For tests, whose next line must see a change.
 */
export interface LiveSource extends GenerationSource {
  floorOf(clientId: string): number | undefined;
}

/** Whether a source can be asked about one client at any moment. */
export function isLive(source: GenerationSource | undefined): source is LiveSource {
  return typeof (source as Partial<LiveSource> | undefined)?.floorOf === 'function';
}
