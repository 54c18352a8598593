import { lockDirectory } from '../../src/auth-server/storage/data-directory';

/** Takes the lock of each directory that the parent names, says whether it has it, and keeps it. */
process.on('message', (directory: string) => {
  lockDirectory(directory).then(
    () => process.send?.('held'),
    (error: Error) => process.send?.(error.message),
  );
});
process.send?.('started');
