import { IncomingMessage } from 'node:http';
import type { Auth } from './auth';
import type { GateRequest } from './http';
import { passageOf } from './passage';

/** Prototypes whose requests have the accessor. */
const equipped = new WeakSet<object>();

/**
 * Lets `req.auth` say who calls. Requests of Express share one accessor for it: Express gives each request a shape of
 * its own, which V8 copies as a whole for every member that is added. Other requests get a member.
 */
export function showAuth(req: GateRequest & { auth?: Auth }, auth: Auth): void {
  if (isEquipped(Object.getPrototypeOf(req) as object) && !Object.hasOwn(req, 'auth')) return;
  req.auth = auth;
}

function isEquipped(prototype: object): boolean {
  if (equipped.has(prototype)) return true;
  const shared = sharedPrototype(prototype);
  if (!shared) return false;
  const present = Object.getOwnPropertyDescriptor(shared, 'auth');
  // What somebody else has put there stays, another copy of this module among them.
  if (present ? present.get !== ACCESSOR.get : !Reflect.defineProperty(shared, 'auth', ACCESSOR)) return false;
  equipped.add(prototype);
  return true;
}

/** What the requests of all apps have in common, `express.request`; node's own prototype is left alone. */
function sharedPrototype(prototype: object): object | undefined {
  let each: object | null = prototype;
  while (each !== null && each !== IncomingMessage.prototype) {
    const next = Object.getPrototypeOf(each) as object | null;
    if (next === IncomingMessage.prototype) return each;
    each = next;
  }
  return undefined;
}

const ACCESSOR: PropertyDescriptor & ThisType<GateRequest> = {
  configurable: true,
  enumerable: true,
  get() {
    return passageOf(this)?.auth;
  },
  /** Whoever assigns has a member of their own, as on any object. */
  set(value: unknown) {
    Object.defineProperty(this, 'auth', { value, configurable: true, enumerable: true, writable: true });
  },
};
