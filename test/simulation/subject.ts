import { join } from 'node:path';
import type { Follower } from '../../src/gate/generation/follower';
import type { logHandler } from '../../src/gate/generation/http/handler';
import type { httpGenerations } from '../../src/gate/generation/http/log';
import type { memoryGenerations } from '../../src/gate/generation/memory';
import type { startPublisher } from '../../src/stores/publisher';

/** The classes that run in a world: those of this repository, or of a copy of it with a fault. */
export interface Subject {
  readonly Follower: typeof Follower;
  readonly startPublisher: typeof startPublisher;
  readonly memoryGenerations: typeof memoryGenerations;
  readonly logHandler: typeof logHandler;
  readonly httpGenerations: typeof httpGenerations;
}

/** Where each is, below a checkout. */
export const SUBJECT_FILES = [
  'src/gate/generation/follower',
  'src/gate/generation/http/handler',
  'src/gate/generation/http/log',
  'src/gate/generation/memory',
  'src/stores/publisher',
] as const;

/** Loads the classes of a checkout. */
export async function loadSubject(root: string): Promise<Subject> {
  const modules = await Promise.all(SUBJECT_FILES.map((file) => import(join(root, file)) as Promise<Partial<Subject>>));
  return Object.assign({}, ...modules) as Subject;
}
