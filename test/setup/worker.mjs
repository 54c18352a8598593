// A process that runs the suites whose paths runner.mjs sends.
const { default: run, setWorkerData } = await import(
  new URL('./worker-runner.js', import.meta.resolve('jest-light-runner')).href
);

// Processes that tests fork get no loader: they run what a user runs.
process.execArgv = [];
// What a suite has left open does not keep the process.
process.on('disconnect', () => process.exit());
process.on('message', ({ path, ...configuration }) => {
  if (path === undefined) return setWorkerData(configuration);
  run(path).then(
    (result) => process.send({ result }),
    ({ name, message, stack }) => process.send({ error: { name, message, stack } }),
  );
});
