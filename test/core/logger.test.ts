import { consoleLogger } from '../../src/core/logger';

describe('the console logger', () => {
  it.each(['warn', 'error'] as const)('%s writes one line of ASCII for any fields', (level) => {
    const written = jest.spyOn(console, level).mockImplementation(() => undefined);
    try {
      consoleLogger[level]({ kid: 'a\r\n\u009b2J\u2028\u202e\u{1f511}' }, 'a key is ignored');
      expect(written.mock.calls).toEqual([
        [String.raw`tillgate: a key is ignored {"kid":"a\r\n\u009b2J\u2028\u202e\ud83d\udd11"}`],
      ]);
    } finally {
      written.mockRestore();
    }
  });
});
