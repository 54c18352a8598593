/**
 * One resource server of the propagation benchmark: follows the source at argv[2], and reports when a token that it
 * accepted is refused. It asks its own gate once a millisecond, as a busy API would.
 */
import { authenticate } from '../../src/index';
import type { AuthenticateOptions } from '../../src/index';
import { generationsFromUrl } from '../../src/generation/from-url';
import { ask } from '../ask';
import { preciseNow } from './messages';
import type { FromServer, ToServer } from './messages';

const ASK_EVERY_MS = 1;

const [url = '', hints = 'on', pollMs = '5000', options = '{}'] = process.argv.slice(2);
const source = generationsFromUrl(url);
const gate = authenticate({
  ...(JSON.parse(options) as AuthenticateOptions),
  // Without `watch` polling alone is left, as when the hint channel is cut off.
  generationSource: hints === 'on' ? { ...source, sentinel: undefined } : { read: (sinceMs) => source.read(sinceMs) },
  pollMs: Number(pollMs),
  unguarded: 'allow',
  logger: { info() {}, warn: console.error, error: console.error },
});

process.on('message', (message: ToServer) => {
  follow(message.round, message.token).catch((error: unknown) => tell({ kind: 'failed', message: String(error) }));
});
void gate.ready().then(() => tell({ kind: 'ready' }));

async function follow(round: number, token: string): Promise<void> {
  if ((await ask(gate, token)) !== 200) throw new Error(`round ${round}: the token was refused before the change`);
  tell({ kind: 'accepted', round });
  const timer = setInterval(() => void check(), ASK_EVERY_MS);
  async function check(): Promise<void> {
    if ((await ask(gate, token)) === 200) return;
    if (!timer.hasRef()) return;
    const at = preciseNow();
    timer.unref();
    clearInterval(timer);
    tell({ kind: 'refused', round, at });
  }
}

function tell(message: FromServer): void {
  process.send?.(message);
}
