import { createTestIssuer } from '../../src/testing/index';
import { settle } from '../support/fake-time';
import { guardedApp } from './guarded-app';

const scope = 'orders:read';
const HOUR_MS = 3_600_000;

describe('the clock of a test issuer', () => {
  it('lets a token expire', async () => {
    const issuer = createTestIssuer();
    const { outcome } = guardedApp(issuer.options);
    const token = issuer.token({ scope, lifetimeSeconds: 60 });
    expect(await outcome(token)).toBe('200');
    issuer.clock.advance(80_000);
    expect(await outcome(token)).toBe('401 expired');
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it.each([
    ['a day ahead', (now: number) => now + 24 * HOUR_MS],
    ['years back', () => Date.parse('2005-01-01T00:00:00Z')],
  ])('can be set %s while a gate is running', async (_where, timeFrom) => {
    const issuer = createTestIssuer();
    const { gate, outcome } = guardedApp(issuer.options);
    expect(await outcome(issuer.token({ scope }))).toBe('200');
    issuer.clock.set(timeFrom(issuer.clock.now()));
    const token = issuer.token({ scope });
    expect(await outcome(token)).toBe('200');
    expect(gate.status().ready).toBe(true);
    issuer.bump();
    expect(await outcome(token)).toBe('401 superseded');
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it('runs until it is set, is stopped from then on, and can be advanced in both cases', () => {
    let wall = 1_800_000_000_000;
    const { clock } = createTestIssuer({ clock: () => wall });
    expect(clock.now()).toBe(1_800_000_000_000);
    clock.advance(500);
    wall += 1_000;
    expect(clock.now()).toBe(1_800_000_001_500);
    clock.set(5_000);
    wall += 1_000;
    clock.advance(250);
    expect(clock.now()).toBe(5_250);
  });

  it.each<[string, (clock: ReturnType<typeof createTestIssuer>['clock']) => void, string]>([
    ['advance(-1)', (clock) => clock.advance(-1), 'expected milliseconds from 0 on, got -1; set() goes back'],
    ['advance(NaN)', (clock) => clock.advance(NaN), 'expected milliseconds from 0 on, got NaN; set() goes back'],
    ['set(a date)', (clock) => clock.set(new Date() as never), 'expected milliseconds since the epoch, got an object'],
  ])('refuses %s', (call, move, message) => {
    expect(() => move(createTestIssuer().clock)).toThrow(new TypeError(`clock.${call.split('(')[0]}(): ${message}`));
  });

  it('can be advanced right after a gate was made', async () => {
    const issuer = createTestIssuer();
    const { outcome } = guardedApp(issuer.options);
    issuer.clock.advance(600_000);
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it('fires, in order, the timers that are due by then', async () => {
    const { clock, options } = createTestIssuer({ clock: () => 0 });
    const ran: string[] = [];
    options.schedule?.(() => ran.push('late'), 2_000);
    options.schedule?.(() => ran.push('early'), 1_000);
    options.schedule?.(() => ran.push('cancelled'), 1_000).cancel();
    options.schedule?.(() => ran.push('never'), 60_000).cancel();
    clock.advance(999);
    expect(ran).toEqual([]);
    clock.advance(1_500);
    await settle();
    expect(ran).toEqual(['early', 'late']);
    clock.advance(HOUR_MS);
    await settle();
    expect(ran).toEqual(['early', 'late']);
  });
});
