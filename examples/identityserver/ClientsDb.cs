// Generations of IdentityServer on any database of EF Core, without a trigger: the numbers, the stamp and GET /generations.
// Run with IdentityServer8 8.0.4, .NET 10 and EF Core 10.0.15 on SQLite 3 and MariaDB 10.11, one node and two. Not run on SQL
// Server, and not with migrations. For a project with ImplicitUsings and Nullable:
//   server.AddConfigurationStore<ClientsDb>(store => store.ConfigureDbContext = db => db.UseSqlServer(...));
//   server.AddClientStore<GenerationClientStore>(); // after it, and without AddConfigurationStoreCache
//   app.MapGet("/generations", ClientsDb.Log);
using System.Security.Claims;
using IdentityServer8.EntityFramework.DbContexts;
using IdentityServer8.EntityFramework.Entities;
using IdentityServer8.EntityFramework.Options;
using IdentityServer8.EntityFramework.Stores;
using Microsoft.EntityFrameworkCore;

public class ClientGeneration { public string Id { get; set; } = ""; public long Number { get; set; } public long Position { get; set; } }

public class ClientsDb(DbContextOptions<ClientsDb> db, ConfigurationStoreOptions store) : ConfigurationDbContext<ClientsDb>(db, store)
{
    public IQueryable<ClientGeneration> Rows => Set<ClientGeneration>().AsNoTracking();
    public IQueryable<ClientGeneration> Head => Rows.Where(r => r.Id == ""); // one row: the last position, and as its number the epoch
    protected override void OnModelCreating(ModelBuilder model)
    {
        base.OnModelCreating(model);
        model.Entity<ClientGeneration>(row => { row.HasIndex(r => r.Position); row.HasData(new ClientGeneration()); });
    }
    public override int SaveChanges(bool accept) => SaveChangesAsync(accept).GetAwaiter().GetResult();
    public override Task<int> SaveChangesAsync(bool accept, CancellationToken stop = default) =>
        Database.CreateExecutionStrategy().ExecuteAsync(async () =>
    {
        var ids = new HashSet<string>();
        foreach (var entry in ChangeTracker.Entries().Where(entry => entry.State != EntityState.Unchanged).ToList())
        {
            var values = entry.State == EntityState.Added ? entry.CurrentValues : entry.OriginalValues;
            if (entry.Entity is ClientGeneration) entry.State = EntityState.Detached; // of an attempt that failed
            if (entry.Entity is Client client) ids.UnionWith([(string)values["ClientId"]!, client.ClientId]);
            if (entry.Entity is ClientSecret or ClientScope or ClientClaim or ClientGrantType
                && await Clients.FindAsync([values["ClientId"]], stop) is { } owner) ids.Add(owner.ClientId);
        }
        if (ids.Count == 0) return await base.SaveChangesAsync(accept, stop);
        await using var transaction = Database.CurrentTransaction is null ? await Database.BeginTransactionAsync(stop) : null;
        // Locks the row until the commit: positions are committed in their order, and the changes of a client one by one.
        await Head.ExecuteUpdateAsync(s => s.SetProperty(r => r.Position, r => r.Position + ids.Count), stop);
        var head = await Head.SingleAsync(stop);
        long now = Math.Max(DateTimeOffset.UtcNow.ToUnixTimeMilliseconds(), head.Number + 1), last = head.Position - ids.Count;
        foreach (var (id, position) in ids.Select((id, index) => (id, last + index + 1)))
            if (await Rows.Where(r => r.Id == id).ExecuteUpdateAsync(s => s
                .SetProperty(r => r.Position, position).SetProperty(r => r.Id, id)
                .SetProperty(r => r.Number, r => r.Number < now ? now : r.Number + 1), stop) == 0)
                Add(new ClientGeneration { Id = id, Number = now, Position = position });
        int saved = await base.SaveChangesAsync(false, stop);
        if (transaction is not null) await transaction.CommitAsync(stop);
        if (accept) ChangeTracker.AcceptAllChanges();
        return saved;
    });
    public static async Task<IResult> Log(string? after, int? wait, HttpRequest q, IConfiguration c, ClientsDb db, CancellationToken stop)
    {
        static byte[] Bytes(string text) => System.Text.Encoding.UTF8.GetBytes(text);
        byte[] given = Bytes($"{q.Headers.Authorization}"), wanted = Bytes(c["GenerationsAuthorization"]!); // Basic, base64 of id:secret
        if (!System.Security.Cryptography.CryptographicOperations.FixedTimeEquals(given, wanted)) return Results.Unauthorized();
        for (long until = Environment.TickCount64 + Math.Min(wait ?? 0, 30_000); ; await Task.Delay(100, stop))
        {
            long now = DateTimeOffset.UtcNow.ToUnixTimeMilliseconds();
            var head = await db.Head.SingleAsync(stop);
            // Another epoch, or a position to come: the database was restored, so everything follows.
            long at = after?.Split('.') is [var e, var p] && e == $"{head.Number}" && long.TryParse(p, out at) && at <= head.Position
                ? at : 0;
            var rows = await db.Rows.Where(r => r.Id != "" && r.Position > at).OrderBy(r => r.Position).Take(2000).ToListAsync(stop);
            if (rows.Count == 0 && Environment.TickCount64 < until) continue;
            var mark = new { epoch = $"{head.Number}", unit = head.Position, complete_ms = now, kept_ms = 31_536_000_000 };
            var changes = rows.Select(r => new { client_id = r.Id, generation = Math.Max(r.Number, head.Number) });
            string position = $"{head.Number}.{rows.LastOrDefault()?.Position ?? at}";
            return Results.Json(new { position, end = rows.Count < 2000, mark, changes });
        }
    }
}
public class GenerationClientStore(ClientsDb db, ILogger<ClientStore> logger) : ClientStore(db, logger)
{
    public override async Task<IdentityServer8.Models.Client> FindClientByIdAsync(string id)
    {
        // Before the client, never after it: new scopes with the old number are refused, old scopes with the new one would pass.
        long number = await db.Rows.Where(r => r.Id == id || r.Id == "").MaxAsync(r => r.Number);
        if (await base.FindClientByIdAsync(id) is not { } client) return null!;
        client.Claims = [.. client.Claims.Where(c => c.Type != "generation"), new("generation", $"{number}", ClaimValueTypes.Integer64)];
        return client;
    }
}
