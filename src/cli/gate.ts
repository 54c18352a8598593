import { authenticate, authenticateOptions } from '../index';
import type { Gate, Settings } from '../index';
import { authorizedGenerations } from './generation-source';
import type { CliIo } from './io';

/** A gate as the API would have it, without an API. */
export interface OpenGate {
  readonly gate: Gate;
  readonly close: () => Promise<void>;
}

/** Opens a gate that says nothing by itself: whoever opens it looks at its state. */
export function openGate(io: CliIo, settings: Settings): OpenGate {
  const surroundings = { fetch: io.fetch, logger: SILENT };
  const generations = authorizedGenerations(settings, surroundings);
  const gate = authenticate({
    ...authenticateOptions(settings),
    ...surroundings,
    ...(generations && { generationSource: generations }),
  });
  return {
    gate,
    async close() {
      await gate.close();
      await generations?.close?.();
    },
  };
}

const SILENT = { info() {}, warn() {}, error() {} };
