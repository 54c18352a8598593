/** It brings no types, and takes and returns what spawn() of Node does. */
declare module 'cross-spawn' {
  import { spawn } from 'node:child_process';
  export = spawn;
}
