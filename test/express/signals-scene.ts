import { createSign, generateKeyPairSync } from 'node:crypto';
import express from 'express';
import type { Express } from 'express';
import request from 'supertest';
import { signalsReceiver } from '../../src/index';
import type { SignalsReceiverOptions } from '../../src/index';
import type { GenerationSource } from '../../src/generation';
import { memoryGenerations } from '../../src/generation/memory';
import { recordingLogger } from '../support/log';
import type { RecordingLogger } from '../support/log';

export const NOW = Date.parse('2026-05-01T12:00:00.500Z');
export const NOW_SECONDS = Math.floor(NOW / 1000);
export const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/';
export const SUBJECT = { format: 'iss_sub', iss: 'https://login.test', sub: 'pos-17' };

const keyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
export const foreign = generateKeyPairSync('ec', { namedCurve: 'P-256' });
/** The transmitter's key. */
export const jwk = { ...keyPair.publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES256', use: 'sig' };

export const event = (claims: object = {}): object => ({
  iss: 'https://login.test',
  aud: 'https://api.test/events',
  jti: 'e1',
  iat: NOW_SECONDS,
  sub_id: SUBJECT,
  events: { [`${CAEP}credential-change`]: { event_timestamp: NOW_SECONDS - 5 } },
  ...claims,
});

export function sign(claims: object, header: object = {}, key = keyPair.privateKey): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const input = `${encode({ alg: 'ES256', typ: 'secevent+jwt', kid: 'k1', ...header })}.${encode(claims)}`;
  const signature = createSign('sha256').update(input).sign({ key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

/** A receiver in an app, and what it has published and logged. */
interface Scene {
  readonly app: Express;
  readonly receiver: ReturnType<typeof signalsReceiver>;
  readonly deliver: (body: string, type?: string) => request.Test;
  readonly floors: () => unknown[];
  readonly log: RecordingLogger;
}

/** A source that can only be appended to. */
export function appendingTo(append: (clientId: string, generation: number) => Promise<void>): GenerationSource {
  return {
    mark: false,
    reader: () => ({ next: () => Promise.reject(new Error('unused')), close() {} }),
    append: async ([change]) => void (await append(...change!)),
  };
}

export function setUp(overrides: Partial<SignalsReceiverOptions> = {}): Scene {
  const log = recordingLogger();
  const generations = memoryGenerations({ clock: () => NOW });
  // As a store that survives a restart.
  const generationSource = appendingTo(async (...change) => void (await generations.append([change])));
  const receiver = signalsReceiver({
    transmitter: 'https://login.test',
    audience: 'https://api.test/events',
    keys: { keys: [jwk] },
    generationSource,
    clock: () => NOW,
    logger: log,
    ...overrides,
  });
  const app = express().use('/events', receiver);
  const deliver = (body: string, type = 'application/secevent+jwt'): request.Test =>
    request(app).post('/events').set('Content-Type', type).send(body);
  const floors = (): unknown[] => {
    const highest = new Map<string, number>();
    for (const [clientId, generation] of generations.read(undefined).changes) {
      highest.set(clientId, Math.max(generation, highest.get(clientId) ?? 0));
    }
    return [...highest];
  };
  return { app, receiver, deliver, floors, log };
}
