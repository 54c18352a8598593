import { join } from 'node:path';
import { tryLock } from '../../../src/auth-server/data-directory';

/** Takes the lock of each directory that the parent names, says who has it, and keeps it. */
process.on('message', (directory: string) => {
  void tryLock(join(directory, 'lock')).then((lock) => process.send?.('holder' in lock ? lock.holder : 'held'));
});
process.send?.('started');
