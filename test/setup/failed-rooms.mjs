// A reporter: names the rooms in which suites have failed, after everything else.
export default class FailedRooms {
  #rootDir;

  constructor({ rootDir }) {
    this.#rootDir = rootDir;
  }

  onRunComplete(_contexts, { testResults }) {
    const failed = new Map();
    for (const { testFilePath, numFailingTests, failureMessage } of testResults) {
      if (numFailingTests === 0 && !failureMessage) continue;
      const [, room] = testFilePath.slice(this.#rootDir.length + 1).split(/[\\/]/);
      failed.set(room, (failed.get(room) ?? 0) + 1);
    }
    if (failed.size === 0) return;
    const rooms = [...failed].map(([room, suites]) => `${room} (${suites} ${suites === 1 ? 'suite' : 'suites'})`);
    console.error(`Failed in ${rooms.sort().join(', ')}`);
  }
}
