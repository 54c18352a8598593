import fc from 'fast-check';
import { changeScopes, describeClient, register, remove, revoke, rotate, setDisabled } from './client-commands';
import { CLIENT_IDS, newModel, SCOPES } from './model';
import type { Model } from './model';
import { startSystem } from './system';
import type { Faults, System } from './system';
import { call, introspect, passTime, requestToken, restartApis, restartServer, setClock } from './token-commands';

const id = fc.constantFrom(...CLIENT_IDS);
const scopes = fc.subarray([...SCOPES], { minLength: 1 });
/** White space and case count. */
const description = fc.constantFrom('Till 1', 'Till 1 ', 'till 1', 'Till 2', '');
const secretAt = fc.constantFrom(0, 0, 0, 1, 2);
const tokenAt = fc.nat({ max: 5 });
const often = fc.tuple(id, secretAt, scopes).map((args) => requestToken(...args));
const calls = fc.tuple(tokenAt, fc.constantFrom(...SCOPES)).map((args) => call(...args));

/** Sequences of actions of users, operators and machines. */
function sequences(maxCommands: number): fc.Arbitrary<Iterable<fc.AsyncCommand<Model, System, boolean>>> {
  const alternatives = [
    fc.tuple(id, description, scopes).map((args) => register(...args)),
    often,
    often,
    often,
    calls,
    calls,
    fc.tuple(id, description).map((args) => describeClient(...args)),
    fc.tuple(id, scopes).map((args) => changeScopes(...args)),
    fc.tuple(id, fc.boolean()).map((args) => setDisabled(...args)),
    fc.tuple(id, fc.boolean(), fc.boolean()).map((args) => rotate(...args)),
    id.map(revoke),
    id.map(remove),
    tokenAt.map(introspect),
    fc.boolean().map(restartServer),
    fc.constant(restartApis()),
    fc.constantFrom(1, 700, 5_000, 45_000, 75_000).map(passTime),
    fc.constantFrom(-4_000, -1, 0, 4_000).map(setClock),
  ];
  return fc.commands(alternatives, { maxCommands, size: 'max' });
}

/** Runs sequences of commands on the system and on the model; both start with two clients and a token each. */
export function systemAgreesWithModel(faults: Faults = {}, maxCommands = 40): fc.IAsyncProperty<unknown> {
  return fc.asyncProperty(sequences(maxCommands), async (commands) => {
    const real = await startSystem(faults);
    const model = newModel(real.time.clock());
    try {
      for (const one of CLIENT_IDS) {
        await register(one, 'Till 1', SCOPES).run(model, real);
        await requestToken(one, 0, SCOPES).run(model, real);
      }
      await fc.asyncModelRun(() => ({ model, real }), commands);
    } finally {
      await real.close();
    }
  });
}
