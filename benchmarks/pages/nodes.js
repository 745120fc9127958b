const { graph } = explorer;
const step = Math.floor(graph.size / arguments[0]);
return [...Array(arguments[0]).keys()].map((index) => graph.byStrength[index * step]);
