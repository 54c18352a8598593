import { cliScene } from './harness';

const scene = cliScene();

it('that of zsh is that of bash, after bashcompinit', async () => {
  const [ofZsh, ofBash] = [await scene.run('completion', 'zsh'), await scene.run('completion', 'bash')];
  expect(ofZsh.stdout).toContain('autoload -U bashcompinit && bashcompinit\n');
  expect(ofZsh.stdout.endsWith(ofBash.stdout)).toBe(true);
});

it('takes no other shell', async () => {
  expect(await scene.run('completion', 'csh')).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: 'tillgate: expected bash, zsh or fish, got "csh"\n',
  });
});
