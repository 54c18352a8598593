// A server of OpenIddict on any database of EF Core: IssuerDb keeps a number per client, the token endpoint stamps it, and
// GET /generations serves it. Run with OpenIddict 7.8.0, ASP.NET Core 10 and EF Core 10.0.15 on SQLite. The routes below /clients
// are there to try it, and have no access control; nor has /generations, which belongs on a private network.
using System.ComponentModel.DataAnnotations;
using System.Security.Claims;
using Microsoft.AspNetCore;
using Microsoft.EntityFrameworkCore;
using OpenIddict.Abstractions;
using OpenIddict.EntityFrameworkCore.Models;
using OpenIddict.Server.AspNetCore;
using static OpenIddict.Abstractions.OpenIddictConstants;

var builder = WebApplication.CreateBuilder(args);
builder.Services.AddDbContext<IssuerDb>(options => options.UseSqlite(builder.Configuration["DATABASE"]).UseOpenIddict());
builder.Services.AddOpenIddict()
    .AddCore(core => core.UseEntityFrameworkCore().UseDbContext<IssuerDb>())
    .AddServer(server =>
    {
        server.SetTokenEndpointUris("connect/token").AllowClientCredentialsFlow();
        server.SetIntrospectionEndpointUris("connect/introspect");
        server.SetIssuer(builder.Configuration["ISSUER"]!);
        server.AddEphemeralSigningKey().AddEphemeralEncryptionKey();
        server.DisableAccessTokenEncryption();
        server.UseAspNetCore().EnableTokenEndpointPassthrough().DisableTransportSecurityRequirement();
    });
var app = builder.Build();
using (var scope = app.Services.CreateScope())
{
    await scope.ServiceProvider.GetRequiredService<IssuerDb>().Database.EnsureCreatedAsync();
    var scopes = scope.ServiceProvider.GetRequiredService<IOpenIddictScopeManager>();
    if (await scopes.FindByNameAsync("orders:read") is null)
        await scopes.CreateAsync(new OpenIddictScopeDescriptor { Name = "orders:read", Resources = { "https://api.example.com" } });
}

app.MapPost("/connect/token", async (HttpContext context, IssuerDb db, IOpenIddictScopeManager scopes) =>
{
    var request = context.GetOpenIddictServerRequest()!;
    var client = await db.FindAsync<ClientGeneration>(request.ClientId);
    var identity = new ClaimsIdentity("client_credentials")
        .SetClaim(Claims.Subject, request.ClientId)
        .SetScopes(request.GetScopes())
        .SetResources(await scopes.ListResourcesAsync(request.GetScopes()).ToListAsync())
        .SetClaim("generation", client?.Number ?? 0)
        .SetDestinations(_ => [Destinations.AccessToken]);
    return Results.SignIn(new ClaimsPrincipal(identity), null, OpenIddictServerAspNetCoreDefaults.AuthenticationScheme);
});

app.MapGet("/generations", async (string? after, int? wait, IssuerDb db) =>
{
    long now = DateTimeOffset.UtcNow.ToUnixTimeMilliseconds(), known = long.TryParse(after, out var position) ? position : 0;
    var changes = await db.Set<ClientGeneration>().AsNoTracking().Where(row => row.Number > known - 60_000).ToListAsync();
    if (changes.All(row => row.Number <= known)) await Task.Delay(Math.Min(wait ?? 0, 250));
    return Results.Json(new
    {
        position = changes.Select(row => row.Number).Append(known).Max().ToString(),
        end = true,
        mark = new { epoch = "1", unit = now, complete_ms = now, kept_ms = 90_000_000 },
        changes = changes.Select(row => new { client_id = row.ClientId, generation = row.Number }),
    });
});

app.MapPost("/clients/{id}", async (string id, IOpenIddictApplicationManager applications) => await applications.CreateAsync(new OpenIddictApplicationDescriptor
{
    ClientId = id, ClientSecret = id + "-secret", Permissions = { Permissions.Endpoints.Token, Permissions.Endpoints.Introspection, Permissions.GrantTypes.ClientCredentials, Permissions.Prefixes.Scope + "orders:read" },
}));
app.MapPut("/clients/{id}", async (string id, string name, IOpenIddictApplicationManager applications) =>
{
    var application = (await applications.FindByClientIdAsync(id))!;
    var descriptor = new OpenIddictApplicationDescriptor();
    await applications.PopulateAsync(descriptor, application);
    descriptor.DisplayName = name;
    await applications.UpdateAsync(application, descriptor);
});
app.MapDelete("/clients/{id}", async (string id, IOpenIddictApplicationManager applications) => await applications.DeleteAsync((await applications.FindByClientIdAsync(id))!));
app.Run();

class ClientGeneration
{
    [Key] public required string ClientId { get; set; }
    public long Number { get; set; }
}

class IssuerDb(DbContextOptions<IssuerDb> options) : DbContext(options)
{
    protected override void OnModelCreating(ModelBuilder model) => model.Entity<ClientGeneration>();

    public override async Task<int> SaveChangesAsync(bool acceptAll, CancellationToken stop = default)
    {
        foreach (var entry in ChangeTracker.Entries<OpenIddictEntityFrameworkCoreApplication>().ToList())
        {
            if (entry.State is EntityState.Unchanged or EntityState.Detached) continue;
            string id = entry.Property(client => client.ClientId).OriginalValue!;
            var row = await FindAsync<ClientGeneration>([id], stop) ?? Add(new ClientGeneration { ClientId = id }).Entity;
            row.Number = Math.Max(row.Number + 1, DateTimeOffset.UtcNow.ToUnixTimeMilliseconds());
        }
        return await base.SaveChangesAsync(acceptAll, stop);
    }
}
