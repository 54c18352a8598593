/**
 * One resource server of the propagation benchmark: follows the source at argv[2], and reports when a token that it
 * accepted is refused: it asks its own gate after each read, and every 10 ms. A busy API would ask more often, but 8 of
 * them on 2 cores would measure each other.
 */
import { authenticate } from '../../src/gate/index';
import type { AuthenticateOptions } from '../../src/gate/index';
import type { GenerationSource } from '../../src/gate/generation';
import { generationsFromUrl } from '../../src/gate/generation/from-url';
import { ask } from './ask';
import { subscribeBare } from './bare';
import { preciseNow } from './messages';
import type { FromServer, ToServer } from './messages';

const ASK_EVERY_MS = 10;
/** Called after each read. */
let afterRead = (): void => undefined;

const [url = '', options = '{}'] = process.argv.slice(2);
const real = generationsFromUrl(url);
const generationSource: GenerationSource = {
  // Nothing keeps one here.
  mark: false,
  reader() {
    const reader = real.reader();
    return {
      async next(waitMs) {
        const batch = await reader.next(waitMs);
        setImmediate(() => afterRead());
        return batch;
      },
      close: () => reader.close(),
    };
  },
};
const gate = authenticate({
  ...(JSON.parse(options) as AuthenticateOptions),
  generationSource,
  unguarded: 'allow',
  logger: { info() {}, warn: console.error, error: console.error },
});

process.on('message', (message: ToServer) => {
  follow(message.round, message.token).catch((error: unknown) => tell({ kind: 'failed', message: String(error) }));
});
const subscribed = subscribeBare(url, (message) => tell({ kind: 'bare', round: Number(message), at: preciseNow() }));
void Promise.all([gate.ready(), subscribed]).then(() => tell({ kind: 'ready' }));

async function follow(round: number, token: string): Promise<void> {
  if ((await ask(gate, token)) !== 200) throw new Error(`round ${round}: the token was refused before the change`);
  tell({ kind: 'accepted', round });
  const timer = setInterval(() => void check(), ASK_EVERY_MS);
  afterRead = () => void check();
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
