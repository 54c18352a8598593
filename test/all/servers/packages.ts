import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where foreign servers are installed: one folder each, kept from run to run. */
const FOLDER = join(__dirname, '../../../node_modules/.cache/servers');

/** Installs packages of npm next to copies of some files, and returns the folder. */
export async function npmPackages(
  name: string,
  packages: readonly string[],
  files: readonly string[],
): Promise<string> {
  const folder = await folderOf(name, files);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const installed = packages.every((one) => existsSync(join(folder, 'node_modules', one.replace(/(.)@.*/, '$1'))));
  if (!installed) await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', ...packages], { cwd: folder });
  return folder;
}

/** Installs packages of PyPI into an environment of their own, and returns its python. */
export async function pythonPackages(name: string, packages: readonly string[]): Promise<string> {
  const folder = await folderOf(name, []);
  const python = join(folder, 'bin/python');
  if (!existsSync(python)) await run('python3', ['-m', 'venv', folder]);
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages]);
  return python;
}

/** Downloads an artifact of Maven Central unless the local repository has it, and returns its file there. */
export async function mavenArtifact(group: string, artifact: string, version: string, type = 'jar'): Promise<string> {
  const folder = join(homedir(), '.m2/repository', ...group.split('.'), artifact, version);
  const file = join(folder, `${artifact}-${version}.${type}`);
  if (!existsSync(file)) {
    const coordinates = `${group}:${artifact}:${version}:${type}`;
    await run('mvn', ['-q', '-B', 'dependency:get', `-Dartifact=${coordinates}`]);
  }
  return file;
}

/** A folder of a server with copies of some files of ours. */
export async function folderOf(name: string, files: readonly string[]): Promise<string> {
  const folder = join(FOLDER, name);
  await mkdir(folder, { recursive: true });
  for (const file of files) await copyFile(file, join(folder, basename(file)));
  return folder;
}

/** Downloads an artifact of Maven Central with all that it needs at run time, and returns the class path. */
export async function mavenClasses(coordinates: string): Promise<{ classes: string; folder: string }> {
  const [groupId, artifactId = '', version] = coordinates.split(':');
  const folder = await folderOf(artifactId, []);
  const dependency = `<groupId>${groupId}</groupId><artifactId>${artifactId}</artifactId><version>${version}</version>`;
  const project = `<modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>run</artifactId><version>1</version>`;
  const pom = join(folder, 'pom.xml');
  await writeFile(
    pom,
    `<project>${project}<dependencies><dependency>${dependency}</dependency></dependencies></project>`,
  );
  if (!existsSync(join(folder, 'lib'))) {
    const copy = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${join(folder, 'lib')}`];
    await run('mvn', ['-q', '-B', '-f', pom, ...copy]);
  }
  return { classes: join(folder, 'lib', '*'), folder };
}
