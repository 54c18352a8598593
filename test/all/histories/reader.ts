import { AuthError } from '../../../src/core/auth-error';
import { systemClock, systemSchedule } from '../../../src/core/clock';
import type { PublishingSource } from '../../../src/generation';
import { generationVerifier } from '../../../src/generation/verifier';
import type { GenerationVerifier } from '../../../src/generation/verifier';
import { recordingLogger } from '../../support/log';
import { Actor } from './actors';
import type { ActorDependencies } from './actors';

/** What a history found wrong. */
export interface Findings {
  /** A floor that a reader knew, and no longer compares with. */
  revived: number;
  /** A floor that was acknowledged before a reader's last complete read began, and is unknown to that reader, which says it is fresh. */
  missed: number;
}

/** A resource server: known floors must hold for as long as it runs. */
export class Reader extends Actor {
  #verifier: GenerationVerifier | undefined;
  #known = new Map<string, number>();
  checks = 0;

  constructor(dependencies: ActorDependencies) {
    super(dependencies, 'reader');
  }

  protected run(source: PublishingSource): void {
    this.#known = new Map();
    this.#verifier = generationVerifier({
      issuer: 'https://login.example',
      rule: { claim: 'generation', decimalString: false, toleranceMs: 600_000 },
      learn: false,
      source,
      maxTokenAgeMs: 86_400_000,
      skewMs: 10_000,
      maxStalenessMs: 2_000,
      onStale: 'reject',
      pollMs: 200,
      readTimeoutMs: 1_000,
      clock: systemClock,
      schedule: systemSchedule,
      logger: recordingLogger(),
    });
  }

  protected halt(): void {
    void this.#verifier?.close();
    this.#verifier = undefined;
  }

  /** When the last complete read began, if the reader says that it is fresh. */
  get completeMs(): number | undefined {
    const { source, ageMs } = this.#verifier?.status() ?? {};
    // The clock may tick in between.
    return source === 'fresh' && ageMs !== undefined ? Date.now() - ageMs - 2 : undefined;
  }

  /** Asks about every client of the book. */
  check(findings: Findings): void {
    const { book } = this.dependencies;
    const completeMs = this.completeMs;
    if (!this.#verifier) return;
    for (const clientId of book.clientIds) {
      const latest = book.floorBefore(clientId);
      if (latest === undefined) continue;
      this.checks++;
      const known = this.#known.get(clientId);
      if (this.#refuses(clientId, latest - 1)) {
        this.#known.set(clientId, Math.max(latest, known ?? 0));
        continue;
      }
      if (known !== undefined && !this.#refuses(clientId, known - 1)) findings.revived++;
      const required = completeMs === undefined ? undefined : book.floorBefore(clientId, completeMs);
      if (required !== undefined && !this.#refuses(clientId, required - 1)) findings.missed++;
    }
  }

  #refuses(clientId: string, generation: number): boolean {
    try {
      this.#verifier?.recheck(clientId, generation);
      return false;
    } catch (error) {
      if (error instanceof AuthError) return error.reason === 'superseded';
      throw error;
    }
  }
}
